/* SPDX-License-Identifier: Apache-2.0 */
/* The log's lines, quoting, and what happens when nobody reads; errors' texts with them. */
#include "broker/base/log.h"

#include "broker/base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int ends[2];
static int saved;

static int catch_stderr(void **state)
{
	(void)state;
	saved = dup(STDERR_FILENO);
	return pipe(ends) || dup2(ends[1], STDERR_FILENO) < 0;
}

static void give_back_stderr(void)
{
	assert_int_not_equal(dup2(saved, STDERR_FILENO), -1);
}

static int release_stderr(void **state)
{
	(void)state;
	(void)dup2(saved, STDERR_FILENO);
	close(saved);
	close(ends[0]);
	close(ends[1]);
	log_init(LOG_LEVEL_INFO, false);
	return 0;
}

static size_t caught(char *out, size_t size)
{
	give_back_stderr();
	assert_int_not_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), -1);
	const ssize_t n = read(ends[0], out, size - 1);
	const size_t len = n > 0 ? (size_t)n : 0;
	out[len] = '\0';
	return len;
}

static void a_line_is_the_level_and_the_words(void **state)
{
	char out[256];

	(void)state;
	log_init(LOG_LEVEL_INFO, false);
	log_error("a=%d", 1);
	log_warning("b");
	log_info("c");
	log_debug("d");
	caught(out, sizeof(out));
	assert_string_equal(out, "error: a=1\nwarning: b\ninfo: c\n");
}

static void under_the_journal_a_line_begins_with_its_priority(void **state)
{
	char out[256];

	(void)state;
	log_init(LOG_LEVEL_DEBUG, true);
	log_error("a");
	log_warning("b");
	log_info("c");
	log_debug("d");
	caught(out, sizeof(out));
	assert_string_equal(out, "<3>error: a\n<4>warning: b\n<6>info: c\n<7>debug: d\n");
}

static void an_event_is_one_line_whatever_it_holds(void **state)
{
	static char text[8192];
	char out[8192];

	(void)state;
	log_error("a\nb\rc");
	memset(text, 'x', sizeof(text) - 1);
	log_error("%s", text);
	const size_t len = caught(out, sizeof(out));
	assert_memory_equal(out, "error: a b c\n", 13);
	assert_ptr_equal(strchr(out + 13, '\n'), out + len - 1);
	/* pipe(7): only so much is written as one. */
	assert_in_range(len - 13, 4000, PIPE_BUF);
}

static void levels_have_the_names_of_the_page(void **state)
{
	(void)state;
	assert_int_equal(log_level_by_name("error"), LOG_LEVEL_ERROR);
	assert_int_equal(log_level_by_name("warning"), LOG_LEVEL_WARNING);
	assert_int_equal(log_level_by_name("info"), LOG_LEVEL_INFO);
	assert_int_equal(log_level_by_name("debug"), LOG_LEVEL_DEBUG);
	assert_int_equal(log_level_by_name("Debug"), -1);
	assert_int_equal(log_level_by_name(""), -1);
}

static void bytes_of_others_are_quoted_and_escaped(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *quoted;
	} cases[] = {
		{"", 0, "\"\""},
		{"plain text ~", 12, "\"plain text ~\""},
		{"a\"b\\c", 5, "\"a\\\"b\\\\c\""},
		{"\0\n\r\t\x1b\x7f", 6, "\"\\x00\\x0a\\x0d\\x09\\x1b\\x7f\""},
		{"\xc3\xa9\xff", 3, "\"\\xc3\\xa9\\xff\""},
	};
	struct quoted q;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_string_equal(quote(&q, cases[i].bytes, cases[i].len), cases[i].quoted);
	assert_string_equal(quote_str(&q, "x"), "\"x\"");
	assert_string_equal(quote_str(&q, NULL), "\"\"");
}

static void at_most_200_bytes_of_others_are_shown(void **state)
{
	char bytes[QUOTED_MAX_BYTES + 1];
	struct quoted q;

	(void)state;
	memset(bytes, 'x', sizeof(bytes));
	quote(&q, bytes, QUOTED_MAX_BYTES);
	assert_int_equal(strlen(q.text), QUOTED_MAX_BYTES + 2);
	quote(&q, bytes, QUOTED_MAX_BYTES + 1);
	assert_int_equal(strlen(q.text), QUOTED_MAX_BYTES + 5);
	assert_string_equal(q.text + QUOTED_MAX_BYTES, "x\"...");
	memset(bytes, 0xff, sizeof(bytes));
	quote(&q, bytes, QUOTED_MAX_BYTES + 1);
	assert_int_equal(strlen(q.text), 4 * QUOTED_MAX_BYTES + 5);
}

/* A wait would hang the test; the alarm turns that into a failure. */
static void a_full_pipe_is_never_waited_for(void **state)
{
	static const char line[1000] = {'x'};
	size_t written;
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_int_not_equal(fcntl(fds[1], F_SETPIPE_SZ, PIPE_BUF), -1);
	alarm(10);
	unsigned taken = 0;
	while (!write_unless_full(fds[1], line, sizeof(line), &written))
		taken++;
	assert_in_range(taken, 1, PIPE_BUF / sizeof(line));
	assert_int_equal(write_unless_full(fds[1], line, sizeof(line), &written), -1);
	assert_int_equal(written, 0);
	alarm(0);
	close(fds[0]);
	close(fds[1]);
}

static void a_line_longer_than_a_pipe_takes_at_once_is_never_waited_for(void **state)
{
	static const char line[3 * PIPE_BUF] = {'x'};
	size_t written;
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_int_not_equal(fcntl(fds[1], F_SETPIPE_SZ, PIPE_BUF), -1);
	alarm(10);
	assert_int_equal(write_unless_full(fds[1], line, sizeof(line), &written), -1);
	assert_in_range(written, 1, sizeof(line) - 1);
	assert_int_not_equal(fcntl(fds[1], F_SETPIPE_SZ, 16 * PIPE_BUF), -1);
	assert_int_equal(write_unless_full(fds[1], line, sizeof(line), &written), 0);
	assert_int_equal(written, sizeof(line));
	alarm(0);
	close(fds[0]);
	close(fds[1]);
}

static void a_pipe_without_a_reader_loses_the_line(void **state)
{
	size_t written;
	int fds[2];

	(void)state;
	(void)signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe(fds), 0);
	close(fds[0]);
	assert_int_equal(write_unless_full(fds[1], "x", 1, &written), -1);
	close(fds[1]);
	assert_int_equal(write_unless_full(-1, "x", 1, &written), -1);
	(void)signal(SIGPIPE, SIG_DFL);
}

static void an_error_has_a_code_a_text_and_context_in_front(void **state)
{
	struct err err = {0};

	(void)state;
	assert_int_equal(err_set(&err, ERR_INVALID, "a %d", 1), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_string_equal(err.text, "a 1");
	assert_int_equal(err_prefix(&err, "file %s", "f"), -1);
	assert_string_equal(err.text, "file f: a 1");
	assert_int_equal(err_set_errno(&err, ENOENT, "/x"), -1);
	assert_int_equal(err.code, ERR_SYSTEM);
	assert_string_equal(err.text, "/x: No such file or directory");
	assert_int_equal(err_set_errno(&err, 99999, "/x"), -1);
	assert_string_equal(err.text, "/x: unknown error");
}

static void a_text_that_is_too_long_is_cut_not_overrun(void **state)
{
	static char text[2 * ERR_TEXT_SIZE];
	struct err err = {0};

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	err_set(&err, ERR_INVALID, "%s", text);
	assert_int_equal(strlen(err.text), ERR_TEXT_SIZE - 1);
	err_prefix(&err, "%s", text);
	assert_in_range(strlen(err.text), 1, ERR_TEXT_SIZE - 1);
	err_set_errno(&err, EACCES, "%s", text);
	assert_non_null(strstr(err.text, ": Permission denied"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_line_is_the_level_and_the_words, catch_stderr,
						release_stderr),
		cmocka_unit_test_setup_teardown(under_the_journal_a_line_begins_with_its_priority,
						catch_stderr, release_stderr),
		cmocka_unit_test_setup_teardown(an_event_is_one_line_whatever_it_holds,
						catch_stderr, release_stderr),
		cmocka_unit_test(levels_have_the_names_of_the_page),
		cmocka_unit_test(bytes_of_others_are_quoted_and_escaped),
		cmocka_unit_test(at_most_200_bytes_of_others_are_shown),
		cmocka_unit_test(a_full_pipe_is_never_waited_for),
		cmocka_unit_test(a_line_longer_than_a_pipe_takes_at_once_is_never_waited_for),
		cmocka_unit_test(a_pipe_without_a_reader_loses_the_line),
		cmocka_unit_test(an_error_has_a_code_a_text_and_context_in_front),
		cmocka_unit_test(a_text_that_is_too_long_is_cut_not_overrun),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
