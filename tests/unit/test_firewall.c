/* SPDX-License-Identifier: Apache-2.0 */
/* When the verdict on the host's firewall counts. */
#include "sandbox/run/firewall.h"

#include "broker/base/alloc.h"
#include "broker/base/compiler.h"
#include "broker/base/err.h"
#include "tests/unit/fake_clock.h"

#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define BOOT "7d0c3c9f-4c62-4b0a-9e6e-1f5a5d3b8a01"
#define INSTALL "host-firewall install` as root"

static struct fake_clock fake;
static char dir[64];
static char path[128];
static char other[128];

static int set_up(void **state)
{
	(void)state;
	fake_clock_init(&fake);
	(void)snprintf(dir, sizeof(dir), "/tmp/postern-test-XXXXXX");
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/firewall.json", dir);
	(void)snprintf(other, sizeof(other), "%s/other.json", dir);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	(void)unlink(path);
	(void)unlink(other);
	assert_int_equal(rmdir(dir), 0);
	return 0;
}

static void write_text(const char *name, const char *text)
{
	(void)unlink(name);
	AUTO_CLOSE int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || fchmod(fd, 0644))
		fail_msg("%s cannot be written", name);
}

/* As `host-firewall check --verdict` writes it. */
static void write_verdict(const char *name, const char *ok, const char *word, int64_t age_s)
{
	AUTO_FREE char *text = xasprintf("{\"ok\":%s,\"verdict\":\"%s\",\"boot_id\":\"" BOOT
					 "\",\"time\":%" PRId64 "}\n",
					 ok, word, FAKE_WALL_S - age_s);

	write_text(name, text);
}

static int read_as(uid_t owner, const char *boot_id, struct err *err)
{
	const struct firewall_verdict verdict = {
		.path = path,
		.owner = owner,
		.boot_id = boot_id,
		.clock = &fake.clock,
	};

	*err = (struct err){0};
	return firewall_read_verdict(&verdict, err);
}

static void check_good(void)
{
	struct err err;

	if (read_as(geteuid(), BOOT, &err))
		fail_msg("%s", err.text);
}

static void check_refused(const char *what)
{
	struct err err;

	assert_int_equal(read_as(geteuid(), BOOT, &err), -1);
	if (!strstr(err.text, what) || !strstr(err.text, INSTALL))
		fail_msg("\"%s\" expected in: %s", what, err.text);
}

static void a_good_verdict_counts_for_under_3_minutes(void **state)
{
	(void)state;
	check_refused("never checked");
	write_verdict(path, "true", "good", 0);
	check_good();
	write_verdict(path, "true", "good", 179);
	check_good();
	write_verdict(path, "true", "good", 180);
	check_refused("not checked in the last 3 minutes");
	write_verdict(path, "true", "good", -1);
	check_refused("not checked in the last 3 minutes");
}

static void a_verdict_of_another_boot_does_not_count(void **state)
{
	struct err err;

	(void)state;
	write_verdict(path, "true", "good", 0);
	assert_int_equal(read_as(geteuid(), "00000000-0000-0000-0000-000000000000", &err), -1);
	assert_non_null(strstr(err.text, "was not checked since it started"));
}

static void what_is_wrong_is_named(void **state)
{
	(void)state;
	write_verdict(path, "false", "no_jump", 0);
	check_refused("(\"no_jump\")");
	check_refused("the same with `check` says why");
}

static void a_verdict_that_others_may_have_written_does_not_count(void **state)
{
	struct err err;

	(void)state;
	write_verdict(path, "true", "good", 0);
	assert_int_equal(read_as(geteuid() + 1, BOOT, &err), -1);
	assert_non_null(strstr(err.text, "others may have written"));
	assert_int_equal(chmod(path, 0664), 0);
	check_refused("others may have written");
	assert_int_equal(unlink(path), 0);
	write_verdict(other, "true", "good", 0);
	assert_int_equal(symlink(other, path), 0);
	check_refused("others may have written");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(link(other, path), 0);
	check_refused("others may have written");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	check_refused("cannot be read");
}

static void what_is_no_verdict_does_not_count(void **state)
{
	static const char *const texts[] = {
		"",
		"[]",
		"{\"ok\":true}",
		"{\"ok\":true,\"boot_id\":\"" BOOT "\",\"time\":\"now\"}",
		"{\"ok\":true,\"ok\":true,\"boot_id\":\"" BOOT "\",\"time\":1795946400}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		write_text(path, texts[i]);
		check_refused("no verdict");
	}
	write_text(path, "{\"ok\":1,\"boot_id\":\"" BOOT "\",\"time\":1795946400}");
	check_refused("may reach the host's metadata server");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_good_verdict_counts_for_under_3_minutes, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_verdict_of_another_boot_does_not_count, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_is_wrong_is_named, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_verdict_that_others_may_have_written_does_not_count, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_no_verdict_does_not_count, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
