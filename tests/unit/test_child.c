/* SPDX-License-Identifier: Apache-2.0 */
/* Programs beside the loop: real ones, on a real loop. */
#include "broker/net/child.h"

#include "broker/base/alloc.h"
#include "broker/base/err.h"
#include "broker/base/strv.h"
#include "broker/net/child_env.h"
#include "broker/net/loop.h"
#include "tests/unit/epoll_fault.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include <cmocka.h>

#define LONG_MS 10000

static struct loop *loop;
static struct strv env;

static struct {
	size_t results;
	enum child_end end;
	int status;
	char output[4096];
	size_t output_len;
	char errors[CHILD_MAX_ERROR_BYTES + 1];
	size_t errors_len;
} got;

static int set_up(void **state)
{
	struct err err;

	(void)state;
	memset(&got, 0, sizeof(got));
	strv_add(&env, "PATH=/usr/bin:/bin", strlen("PATH=/usr/bin:/bin"));
	return loop_new(&loop, &err);
}

static int tear_down(void **state)
{
	siginfo_t info;

	(void)state;
	strv_deinit(&env);
	loop_free(loop);
	/* Every child was waited for. */
	assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	return 0;
}

static void done(void *ctx, const struct child_result *result)
{
	assert_ptr_equal(ctx, &got);
	got.results++;
	got.end = result->end;
	got.status = result->status;
	got.output_len = result->output_len;
	got.errors_len = result->errors_len;
	(void)snprintf(got.output, sizeof(got.output), "%s", result->output);
	(void)snprintf(got.errors, sizeof(got.errors), "%s", result->errors);
	loop_exit(loop, 0);
}

static struct child *start(const char *const *argv, size_t max_bytes, int64_t timeout_ms)
{
	AUTO_STRV struct strv list = {0};
	const struct child_request request = {
		.argv = &list,
		.env = &env,
		.max_output_bytes = max_bytes,
		.timeout_ms = timeout_ms,
	};

	for (; *argv; argv++)
		strv_add(&list, *argv, strlen(*argv));
	struct child *const child = child_start(loop, &request, done, &got);
	assert_non_null(child);
	assert_int_equal(got.results, 0);
	return child;
}

static struct child *start_sh(const char *script, int64_t timeout_ms)
{
	return start((const char *const[]){"/bin/sh", "-c", script, NULL}, 2048, timeout_ms);
}

static void run(void)
{
	struct err err;

	assert_int_equal(loop_run(loop, &err), 0);
	assert_int_equal(got.results, 1);
}

static void its_output_and_its_errors_come_apart(void **state)
{
	(void)state;
	(void)start_sh("echo out; echo err >&2; exit 3", LONG_MS);
	run();
	assert_int_equal(got.end, CHILD_EXITED);
	assert_int_equal(got.status, 3);
	assert_string_equal(got.output, "out\n");
	assert_string_equal(got.errors, "err\n");
}

static void no_shell_touches_the_arguments(void **state)
{
	(void)state;
	(void)start((const char *const[]){"/bin/echo", "$(id)", "a  b", "*", ";", NULL}, 2048,
		    LONG_MS);
	run();
	assert_string_equal(got.output, "$(id) a  b * ;\n");
}

static void its_environment_is_what_was_asked_for(void **state)
{
	(void)state;
	child_env_set(&env, "ONE", "1");
	child_env_set(&env, "EMPTY", "");
	(void)start((const char *const[]){"/usr/bin/env", NULL}, 2048, LONG_MS);
	run();
	assert_string_equal(got.output, "PATH=/usr/bin:/bin\nONE=1\nEMPTY=\n");
}

static void it_has_standard_descriptors_only_and_nothing_to_read(void **state)
{
	(void)state;
	/* One without close-on-exec, as a library may leave behind. */
	const int leaked = open("/dev/null", O_RDONLY); // NOLINT(android-cloexec-open)
	assert_true(leaked > STDERR_FILENO);
	(void)start_sh(
		"for f in /proc/self/fd/*; do echo \"${f##*/}\"; done; readlink /proc/self/fd/0",
		LONG_MS);
	run();
	(void)close(leaked);
	char expected[64];
	/* The shell's own look into the folder is the fourth, gone when it is printed, or not. */
	(void)snprintf(expected, sizeof(expected), "\n%d\n", leaked);
	assert_null(strstr(got.output, expected));
	assert_non_null(strstr(got.output, "0\n1\n2\n"));
	assert_non_null(strstr(got.output, "/dev/null"));
}

static void its_signals_are_as_at_a_login(void **state)
{
	sigset_t blocked;
	sigset_t before;

	(void)state;
	(void)sigfillset(&blocked);
	(void)sigprocmask(SIG_BLOCK, &blocked, &before);
	void (*const handler)(int) = signal(SIGPIPE, SIG_IGN);
	(void)start_sh("grep -E '^Sig(Blk|Ign)' /proc/self/status", LONG_MS);
	run();
	(void)signal(SIGPIPE, handler);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	assert_non_null(strstr(got.output, "SigBlk:\t0000000000000000\n"));
	/* Signals 1 to 28; glibc keeps 32 and 33 for itself. */
	const char *const ignored = strstr(got.output, "SigIgn:");
	assert_non_null(ignored);
	assert_string_equal(ignored + strlen("SigIgn:\t") + 9, "0000000\n");
}

static void a_program_that_is_not_there_is_told_later(void **state)
{
	(void)state;
	(void)start((const char *const[]){"/nonexistent/program", NULL}, 64, LONG_MS);
	run();
	assert_int_equal(got.end, CHILD_NOT_STARTED);
	assert_int_equal(got.status, ENOENT);
}

static void one_that_cannot_be_watched_leaves_no_number_behind(void **state)
{
	(void)state;
	epoll_refuse(EPOLLIN);
	const struct child *const child = start_sh("sleep 60", LONG_MS);
	assert_int_equal(epoll_refused(), 1);
	epoll_refuse(0);
	/* It was reaped: the number may be another process's. */
	assert_int_equal(child_pid(child), 0);
	child_signal(child, SIGTERM);
	run();
	assert_int_equal(got.end, CHILD_NOT_STARTED);
	assert_int_equal(got.status, ENOSPC);
}

static void a_program_that_is_killed_says_by_which_signal(void **state)
{
	(void)state;
	(void)start_sh("kill -TERM $$", LONG_MS);
	run();
	assert_int_equal(got.end, CHILD_SIGNALLED);
	assert_int_equal(got.status, SIGTERM);
}

static void one_that_does_not_end_is_killed_with_what_it_started(void **state)
{
	(void)state;
	(void)start_sh("sleep 60 & echo $!; sleep 60", 100);
	run();
	assert_int_equal(got.end, CHILD_TIMED_OUT);
	pid_t helper = 0;
	for (const char *p = got.output; *p >= '0' && *p <= '9'; p++)
		helper = helper * 10 + (*p - '0');
	assert_true(helper > 1);
	/* It is init's to wait for now: gone, or on its way. */
	for (int i = 0; i < 1000 && !kill(helper, 0); i++) {
		char path[64];
		char line[512] = "";
		(void)snprintf(path, sizeof(path), "/proc/%d/stat", helper);
		AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || read(fd, line, sizeof(line) - 1) <= 0 || strstr(line, ") Z "))
			break;
		assert_int_equal(usleep(1000), 0);
		assert_true(i < 999);
	}
}

static void one_that_ignores_signals_is_killed_all_the_same(void **state)
{
	(void)state;
	(void)start_sh("trap '' TERM INT HUP; while :; do sleep 1; done", 100);
	run();
	assert_int_equal(got.end, CHILD_TIMED_OUT);
}

static void one_that_leaves_a_helper_behind_has_ended_when_it_has(void **state)
{
	(void)state;
	(void)start_sh("sleep 60 & echo token", LONG_MS);
	run();
	assert_int_equal(got.end, CHILD_EXITED);
	assert_string_equal(got.output, "token\n");
}

static void one_that_closes_its_output_early_is_waited_for(void **state)
{
	(void)state;
	(void)start_sh("echo x; exec >&- 2>&-; sleep 0.1; exit 7", LONG_MS);
	run();
	assert_int_equal(got.end, CHILD_EXITED);
	assert_int_equal(got.status, 7);
	assert_string_equal(got.output, "x\n");
}

static void output_up_to_the_cap_is_taken_and_more_is_not(void **state)
{
	(void)state;
	(void)start((const char *const[]){"/usr/bin/head", "-c", "2048", "/dev/zero", NULL}, 2048,
		    LONG_MS);
	run();
	assert_int_equal(got.end, CHILD_EXITED);
	assert_int_equal(got.output_len, 2048);
	memset(&got, 0, sizeof(got));
	loop_free(loop);
	struct err err;
	assert_int_equal(loop_new(&loop, &err), 0);
	(void)start((const char *const[]){"/bin/cat", "/dev/zero", NULL}, 2048, LONG_MS);
	run();
	assert_int_equal(got.end, CHILD_TOO_LARGE);
}

static void endless_errors_are_cut_and_do_no_harm(void **state)
{
	(void)state;
	(void)start_sh("head -c 1000000 /dev/zero | tr '\\0' e >&2; echo done", LONG_MS);
	run();
	assert_int_equal(got.end, CHILD_EXITED);
	assert_string_equal(got.output, "done\n");
	assert_int_equal(got.errors_len, CHILD_MAX_ERROR_BYTES);
}

static void a_cancelled_one_is_killed_and_tells_nothing(void **state)
{
	(void)state;
	child_cancel(start_sh("sleep 60", LONG_MS));
	child_cancel(start((const char *const[]){"/nonexistent/program", NULL}, 64, LONG_MS));
	child_cancel(NULL);
	assert_int_equal(got.results, 0);
}

static size_t open_descriptors(void)
{
	size_t count = 0;
	DIR *const dir = opendir("/proc/self/fd");

	if (!dir)
		abort();
	while (readdir(dir))
		count++;
	(void)closedir(dir);
	return count;
}

static void no_descriptor_is_left_behind(void **state)
{
	const size_t before = open_descriptors();

	(void)state;
	for (int i = 0; i < 10; i++) {
		child_cancel(start_sh("sleep 60", LONG_MS));
		child_cancel(start((const char *const[]){"/x", NULL}, 64, LONG_MS));
	}
	(void)start_sh("echo x", LONG_MS);
	run();
	assert_int_equal(open_descriptors(), before);
}

static void what_the_service_manager_told_us_is_not_passed_on(void **state)
{
	static const char *const ours[] = {
		"A=1",		"NOTIFY_SOCKET=/run/x", "LISTEN_FDS=1",
		"LISTEN_PID=2", "WATCHDOG_USEC=1",	"JOURNAL_STREAM=1:2",
		"B=2=3",	"NOTIFY_SOCKETS=3",	NULL,
	};
	AUTO_STRV struct strv list = {0};

	(void)state;
	child_env_copy(&list, ours);
	assert_int_equal(list.count, 3);
	child_env_set(&list, "B", "4");
	child_env_set(&list, "C", "5");
	assert_int_equal(list.count, 4);
	assert_string_equal(list.items[0], "A=1");
	assert_string_equal(list.items[1], "B=4");
	assert_string_equal(list.items[2], "NOTIFY_SOCKETS=3");
	assert_string_equal(list.items[3], "C=5");
	child_env_copy(&list, NULL);
	assert_int_equal(list.count, 4);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(its_output_and_its_errors_come_apart),
		CASE(no_shell_touches_the_arguments),
		CASE(its_environment_is_what_was_asked_for),
		CASE(it_has_standard_descriptors_only_and_nothing_to_read),
		CASE(its_signals_are_as_at_a_login),
		CASE(a_program_that_is_not_there_is_told_later),
		CASE(one_that_cannot_be_watched_leaves_no_number_behind),
		CASE(a_program_that_is_killed_says_by_which_signal),
		CASE(one_that_does_not_end_is_killed_with_what_it_started),
		CASE(one_that_ignores_signals_is_killed_all_the_same),
		CASE(one_that_leaves_a_helper_behind_has_ended_when_it_has),
		CASE(one_that_closes_its_output_early_is_waited_for),
		CASE(output_up_to_the_cap_is_taken_and_more_is_not),
		CASE(endless_errors_are_cut_and_do_no_harm),
		CASE(a_cancelled_one_is_killed_and_tells_nothing),
		CASE(no_descriptor_is_left_behind),
		CASE(what_the_service_manager_told_us_is_not_passed_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
