/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/run/run_dir.h"

#include "broker/base/alloc.h"
#include "broker/base/err.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static char scratch[] = "/tmp/postern-run-dir.XXXXXX";

static unsigned mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode & 07777;
}

static bool exists(const char *path)
{
	struct stat st;

	return !lstat(path, &st);
}

static int set_up(void **state)
{
	(void)state;
	return mkdtemp(scratch) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	run_dir_remove_path(scratch);
	return 0;
}

static void modes_do_not_depend_on_the_umask(void **state)
{
	AUTO_FREE char *base = xasprintf("%s/modes", scratch);
	struct run_dir dir;
	struct err err;

	(void)state;
	const mode_t before = umask(0777 & ~0700);
	assert_int_equal(run_dir_make(&dir, base, "1", &err), 0);
	AUTO_FREE char *creds = xasprintf("%s/" RUN_DIR_CREDS, dir.path);
	AUTO_FREE char *file = xasprintf("%s/kubeconfig", creds);
	assert_int_equal(run_dir_write(file, 0644, "x", 1, &err), 0);
	(void)umask(before);
	assert_int_equal(mode_of(base), 0700);
	assert_int_equal(mode_of(dir.path), 0700);
	assert_int_equal(mode_of(creds), 0755);
	assert_int_equal(mode_of(file), 0644);
	run_dir_remove(&dir);
	assert_null(dir.path);
	assert_false(exists(file));
}

static void a_file_is_never_written_over(void **state)
{
	AUTO_FREE char *link = xasprintf("%s/link", scratch);
	AUTO_FREE char *target = xasprintf("%s/target", scratch);
	struct err err;

	(void)state;
	assert_int_equal(symlink(target, link), 0);
	assert_int_equal(run_dir_write(link, 0600, "x", 1, &err), -1);
	assert_false(exists(target));
}

static void a_base_that_others_may_enter_is_refused(void **state)
{
	AUTO_FREE char *base = xasprintf("%s/open", scratch);
	struct run_dir dir;
	struct err err;

	(void)state;
	assert_int_equal(mkdir(base, 0700), 0);
	assert_int_equal(chmod(base, 0755), 0);
	assert_int_equal(run_dir_make(&dir, base, "1", &err), -1);
	assert_non_null(strstr(err.text, "XDG_RUNTIME_DIR"));
}

static void a_sweep_takes_what_nobody_holds(void **state)
{
	AUTO_FREE char *base = xasprintf("%s/sweep", scratch);
	struct run_dir held;
	struct run_dir left;
	struct err err;

	(void)state;
	assert_int_equal(run_dir_make(&held, base, "held", &err), 0);
	assert_int_equal(run_dir_make(&left, base, "left", &err), 0);
	AUTO_FREE char *file = xasprintf("%s/" RUN_DIR_CREDS "/token", left.path);
	assert_int_equal(run_dir_write(file, 0644, "x", 1, &err), 0);
	close(TAKE_FD(left.lock)); /* its launcher dies */
	run_dir_sweep(base);
	assert_true(exists(held.path));
	assert_false(exists(left.path));
	free(left.path);
	run_dir_remove(&held);
}

static void what_a_link_leads_to_is_not_swept(void **state)
{
	AUTO_FREE char *base = xasprintf("%s/links", scratch);
	AUTO_FREE char *mine = xasprintf("%s/mine", scratch);
	struct run_dir left;
	struct err err;

	(void)state;
	assert_int_equal(mkdir(mine, 0700), 0);
	AUTO_FREE char *file = xasprintf("%s/file", mine);
	assert_int_equal(run_dir_write(file, 0600, "x", 1, &err), 0);
	assert_int_equal(run_dir_make(&left, base, "left", &err), 0);
	AUTO_FREE char *inside = xasprintf("%s/link", left.path);
	AUTO_FREE char *beside = xasprintf("%s/link", base);
	assert_int_equal(symlink(mine, inside), 0);
	assert_int_equal(symlink(mine, beside), 0);
	close(TAKE_FD(left.lock));
	run_dir_sweep(base);
	assert_false(exists(left.path));
	assert_true(exists(file));
	free(left.path);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(modes_do_not_depend_on_the_umask),
		cmocka_unit_test(a_file_is_never_written_over),
		cmocka_unit_test(a_base_that_others_may_enter_is_refused),
		cmocka_unit_test(a_sweep_takes_what_nobody_holds),
		cmocka_unit_test(what_a_link_leads_to_is_not_swept),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
