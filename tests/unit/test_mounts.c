/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/plan/mounts.h"

#include "broker/base/alloc.h"
#include "broker/base/err.h"
#include "sandbox/plan/caller.h"
#include "sandbox/plan/paths.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

/* A caller with a home of its own, in a directory of the test's. */
struct fixture {
	char *top; /* canonical */
	char *variables[7];
	struct caller caller;
	struct mount_guard guard;
};

/* Made in each fixture: 'd' a directory, 'f' a file, 's' a socket, 'p' a pipe, 'l' a link to the target. */
static const struct {
	char kind;
	const char *path;
	const char *target;
} entries[] = {
	{'d', "home", NULL},
	{'d', "home/project", NULL},
	{'d', "home/.config", NULL},
	{'d', "home/.config/gcloud", NULL},
	{'f', "home/.config/gcloud/application_default_credentials.json", NULL},
	{'d', "home/.kube", NULL},
	{'f', "home/.kube/config", NULL},
	{'d', "home/.ssh", NULL},
	{'d', "cloud", NULL},
	{'f', "adc.json", NULL},
	{'d', "runtime", NULL},
	{'d', "runtime/sub", NULL},
	{'d', "broker", NULL},
	{'s', "broker/control.sock", NULL},
	{'d', "broker/private", NULL},
	{'d', "broker/private/attach", NULL},
	{'d', "work", NULL},
	{'d', "work/src", NULL},
	{'f', "work/file.txt", NULL},
	{'s', "work/src/server.sock", NULL},
	{'l', "work/to-docker", "../engine/docker.sock"},
	{'l', "to-work", "work"},
	{'d', "engine", NULL},
	{'s', "engine/docker.sock", NULL},
	{'d', "deep", NULL},
	{'d', "deep/a", NULL},
	{'d', "deep/a/b", NULL},
	{'s', "deep/a/b/podman.sock", NULL},
	{'d', "renamed", NULL},
	{'s', "renamed/harmless", NULL},
	{'l', "to-docker", "engine/docker.sock"},
	{'l', "to-to-docker", "to-docker"},
	{'l', "to-gcloud", "home/.config/gcloud"},
	{'l', "to-home", "home"},
	{'l', "to-proc", "/proc/self"},
	{'p', "pipe", NULL},
	{'d', "with,comma", NULL},
	{'d', "clusters", NULL},
	{'f', "clusters/admin.yaml", NULL},
	{'f', "clusters/other.yaml", NULL},
	{'d', "sudo", NULL},
	{'d', "sudo/.ssh", NULL},
	{'d', "sudo/project", NULL},
	{'d', "temporary", NULL},
	{'l', "to-temporary", "temporary"},
};

static void make_socket(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		abort();
	assert_true(strlen(path) < sizeof(address.sun_path));
	memcpy(address.sun_path, path, strlen(path) + 1);
	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
}

static void make(const char *top, size_t i)
{
	AUTO_FREE char *path = path_join(top, entries[i].path);
	AUTO_CLOSE int fd = -1;

	switch (entries[i].kind) {
	case 'd':
		assert_int_equal(mkdir(path, 0700), 0);
		break;
	case 's':
		make_socket(path);
		break;
	case 'p':
		assert_int_equal(mkfifo(path, 0600), 0);
		break;
	case 'l':
		assert_int_equal(symlink(entries[i].target, path), 0);
		break;
	default:
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		assert_true(fd >= 0);
	}
}

static int set_up(void **state)
{
	struct fixture *const fixture = xcalloc(1, sizeof(*fixture));
	char top[] = "/tmp/postern-mounts-XXXXXX";

	assert_non_null(mkdtemp(top));
	fixture->top = realpath(top, NULL);
	for (size_t i = 0; i < ARRAY_LEN(entries); i++)
		make(fixture->top, i);
	const char *const formats[] = {"HOME=%s/home",
				       "CLOUDSDK_CONFIG=%s/cloud",
				       "GOOGLE_APPLICATION_CREDENTIALS=%s/adc.json",
				       "XDG_RUNTIME_DIR=%s/runtime",
				       "DOCKER_HOST=unix://%s/renamed/harmless",
				       "KUBECONFIG=:/nowhere:%s/clusters/other.yaml"};
	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		const char *const mark = strstr(formats[i], "%s");
		fixture->variables[i] = xasprintf("%.*s%s%s", (int)(mark - formats[i]), formats[i],
						  fixture->top, mark + 2);
	}
	fixture->caller = (struct caller){
		.home = path_join(fixture->top, "home"),
		.sudo_home = path_join(fixture->top, "sudo"),
		.environ = fixture->variables,
	};
	fixture->guard = (struct mount_guard){
		.caller = &fixture->caller,
		.control = path_join(fixture->top, "broker/control.sock"),
		.kubeconfig = path_join(fixture->top, "clusters/admin.yaml"),
		/* Not made yet, as before the first run. */
		.runs = path_join(fixture->top, "to-temporary/runs"),
	};
	*state = fixture;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static int tear_down(void **state)
{
	struct fixture *const fixture = *state;

	(void)nftw(fixture->top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	for (size_t i = 0; i < ARRAY_LEN(fixture->variables); i++)
		free(fixture->variables[i]);
	free(fixture->top);
	free(fixture->caller.home);
	free(fixture->caller.sudo_home);
	free((char *)fixture->guard.control);
	free((char *)fixture->guard.kubeconfig);
	free((char *)fixture->guard.runs);
	free(fixture);
	return 0;
}

static int check(const struct fixture *fixture, const char *path, char **canonical, struct err *err)
{
	AUTO_FREE char *src = *path == '/' ? xstrdup(path) : path_join(fixture->top, path);

	return mount_check_source(src, &fixture->guard, "--mount", canonical, err);
}

/* Sources that cross, and what they resolve to. */
static const char *const good[][2] = {
	{"work", "work"},
	{"work/", "work"},
	{"work/src/../file.txt", "work/file.txt"},
	{"to-work", "work"},
	{"home/project", "home/project"},
	{"sudo/project", "sudo/project"},
	{"/usr/share", NULL},
};

static void ordinary_files_and_directories_cross_by_their_canonical_path(void **state)
{
	const struct fixture *const fixture = *state;

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		AUTO_FREE char *canonical = NULL;
		struct err err = {0};
		if (check(fixture, good[i][0], &canonical, &err))
			fail_msg("%s: %s", good[i][0], err.text);
		AUTO_FREE char *expected = good[i][1] ? path_join(fixture->top, good[i][1]) :
							xstrdup(good[i][0]);
		assert_string_equal(canonical, expected);
	}
}

/* What may never cross, and a word of the reason. */
static const char *const refused[][2] = {
	{"/", "may not cross"},
	{"/proc", "kernel"},
	{"/proc/self", "kernel"},
	{"/sys", "kernel"},
	{"/sys/kernel", "kernel"},
	{"/dev", "devices"},
	{"/dev/null", "a device"},
	{"/dev/shm", "devices"},
	{"/run", "sockets"},
	{"/var/run", "sockets"},
	{"/var", "may not cross"},
	{"/var/lib", "may not cross"},
	{"/etc", "system"},
	{"/home", "home"},
	{"/root", "home"},
	{"home", "home"},
	{"to-home", "home"},
	{"home/.config", "cloud"},
	{"home/.config/gcloud", "cloud"},
	{"home/.config/gcloud/application_default_credentials.json", "cloud"},
	{"to-gcloud", "cloud"},
	{"home/.kube", "cluster"},
	{"home/.kube/config", "cluster"},
	{"home/.ssh", "login"},
	{"cloud", "cloud"},
	{"adc.json", "cloud"},
	{"runtime", "sockets"},
	{"runtime/sub", "sockets"},
	{"broker", "control socket"},
	{"broker/control.sock", "a socket"},
	{"broker/private", "doors attach"},
	{"broker/private/attach", "doors attach"},
	{"engine/docker.sock", "engine's socket"},
	{"to-docker", "engine's socket"},
	{"to-to-docker", "engine's socket"},
	{"work/to-docker", "engine's socket"},
	{"work/src/server.sock", "a socket"},
	{"engine", "engine's socket"},
	{"deep", "engine's socket"},
	{"renamed", "engine's socket"},
	{"to-proc", "kernel"},
	{"pipe", "a pipe"},
	{"clusters", "kubeconfig"},
	{"clusters/admin.yaml", "one context"},
	{"clusters/other.yaml", "cluster credentials"},
	{"sudo", "home"},
	{"sudo/.ssh", "login"},
	{"temporary", "runs"},
	{"to-temporary", "runs"},
	{"", "may not cross"},
};

static void what_holds_the_host_is_refused_by_name(void **state)
{
	const struct fixture *const fixture = *state;

	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		AUTO_FREE char *canonical = NULL;
		struct err err = {0};
		if (access(refused[i][0], F_OK) && *refused[i][0] == '/')
			continue;
		if (!check(fixture, refused[i][0], &canonical, &err))
			fail_msg("%s crossed", refused[i][0]);
		assert_null(canonical);
		assert_int_equal(err.code, ERR_UNSUPPORTED);
		if (!strstr(err.text, refused[i][1]))
			fail_msg("%s: %s", refused[i][0], err.text);
	}
}

static void a_variable_is_read_from_the_working_directory(void **state)
{
	const struct fixture *const fixture = *state;
	char *variables[] = {(char *)"GOOGLE_APPLICATION_CREDENTIALS=file.txt", NULL};
	const struct caller caller = {.environ = variables};
	const struct mount_guard guard = {.caller = &caller};
	AUTO_FREE char *before = get_current_dir_name();
	AUTO_FREE char *work = path_join(fixture->top, "work");
	AUTO_FREE char *canonical = NULL;
	struct err err = {0};

	assert_int_equal(chdir(work), 0);
	assert_int_equal(mount_check_source(".", &guard, "--workspace", &canonical, &err), -1);
	assert_int_equal(chdir(before), 0);
	assert_non_null(strstr(err.text, "\"file.txt\" (cloud credentials)"));
}

static void a_login_is_told_from_what_a_cluster_takes(void **state)
{
	static const struct {
		const char *path;
		bool is_login;
	} files[] = {
		{"adc.json", true},
		{"home/.config/gcloud/application_default_credentials.json", true},
		{"to-gcloud/application_default_credentials.json", true},
		{"home/.ssh", true},
		{"sudo/.ssh", true},
		{"home/.kube/config", false},
		{"clusters/admin.yaml", false},
		{"runtime/sub", false},
		{"work/file.txt", false},
		{"nowhere", false},
	};
	const struct fixture *const fixture = *state;

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		AUTO_FREE char *path = path_join(fixture->top, files[i].path);
		if (mount_is_login(path, &fixture->guard) != files[i].is_login)
			fail_msg("%s", files[i].path);
	}
}

static void a_link_inside_a_directory_ends_inside_the_sandbox_and_is_no_reason(void **state)
{
	const struct fixture *const fixture = *state;
	AUTO_FREE char *canonical = NULL;
	struct err err = {0};

	/* work holds a link to docker.sock and a socket of somebody's own server */
	assert_int_equal(check(fixture, "work", &canonical, &err), 0);
}

static void a_source_that_is_not_there_is_an_error_and_is_not_made(void **state)
{
	const struct fixture *const fixture = *state;
	AUTO_FREE char *canonical = NULL;
	AUTO_FREE char *path = path_join(fixture->top, "nowhere");
	struct err err = {0};

	assert_int_equal(check(fixture, "nowhere", &canonical, &err), -1);
	assert_non_null(strstr(err.text, "No such file"));
	assert_int_equal(access(path, F_OK), -1);
}

static void a_path_that_an_engine_would_read_as_two_options_is_refused(void **state)
{
	const struct fixture *const fixture = *state;
	AUTO_FREE char *canonical = NULL;
	struct err err = {0};

	assert_int_equal(check(fixture, "with,comma", &canonical, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_non_null(strstr(err.text, "comma"));
}

static const struct {
	const char *text;
	const char *src; /* NULL: refused */
	const char *dst;
	bool ro;
	enum err_code code;
} forms[] = {
	{"/a:/b", "/a", "/b", false, ERR_NONE},
	{"/a:/b:ro", "/a", "/b", true, ERR_NONE},
	{"rel/a:/workspace/data", "rel/a", "/workspace/data", false, ERR_NONE},
	{"/a", NULL, NULL, false, ERR_USAGE},
	{"/a:", NULL, NULL, false, ERR_USAGE},
	{":/b", NULL, NULL, false, ERR_USAGE},
	{"/a:/b:rw", NULL, NULL, false, ERR_USAGE},
	{"/a:/b:", NULL, NULL, false, ERR_USAGE},
	{"/a:/b:ro:z", NULL, NULL, false, ERR_USAGE},
	{"/a:b", NULL, NULL, false, ERR_USAGE},
	{"/a:/", NULL, NULL, false, ERR_USAGE},
	{"/a:/b/", NULL, NULL, false, ERR_USAGE},
	{"/a:/b//c", NULL, NULL, false, ERR_USAGE},
	{"/a:/b/../c", NULL, NULL, false, ERR_USAGE},
	{"/a:/b/.", NULL, NULL, false, ERR_USAGE},
	{"/a:/b,readonly=false", NULL, NULL, false, ERR_USAGE},
	{"/a:/creds", NULL, NULL, false, ERR_UNSUPPORTED},
	{"/a:/creds/token", NULL, NULL, false, ERR_UNSUPPORTED},
	{"/a:/proc/x", NULL, NULL, false, ERR_UNSUPPORTED},
	{"/a:/sys", NULL, NULL, false, ERR_UNSUPPORTED},
	{"/a:/dev/shm", NULL, NULL, false, ERR_UNSUPPORTED},
	{"/a:/credsfoo", "/a", "/credsfoo", false, ERR_NONE},
};

static void a_mount_is_source_destination_and_perhaps_ro(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		CLEANUP(mount_request_deinit) struct mount_request request = {0};
		struct err err = {0};
		const int result = mount_parse(forms[i].text, &request, &err);
		assert_int_equal(err.code, forms[i].code);
		assert_int_equal(result, forms[i].src ? 0 : -1);
		if (!forms[i].src)
			continue;
		assert_string_equal(request.src, forms[i].src);
		assert_string_equal(request.dst, forms[i].dst);
		assert_int_equal(request.ro, forms[i].ro);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ordinary_files_and_directories_cross_by_their_canonical_path),
		cmocka_unit_test(what_holds_the_host_is_refused_by_name),
		cmocka_unit_test(a_variable_is_read_from_the_working_directory),
		cmocka_unit_test(a_login_is_told_from_what_a_cluster_takes),
		cmocka_unit_test(
			a_link_inside_a_directory_ends_inside_the_sandbox_and_is_no_reason),
		cmocka_unit_test(a_source_that_is_not_there_is_an_error_and_is_not_made),
		cmocka_unit_test(a_path_that_an_engine_would_read_as_two_options_is_refused),
		cmocka_unit_test(a_mount_is_source_destination_and_perhaps_ro),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
