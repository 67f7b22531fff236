/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/base/ini.h"

#include "broker/base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void assert_refused(const char *text, size_t len, const char *place, const char *what)
{
	AUTO_INI struct ini ini = {0};
	struct err err = {0};

	if (!ini_parse(&ini, "f", text, len, &err))
		fail_msg("accepted: %s", text);
	assert_int_equal(err.code, ERR_INVALID);
	if (strncmp(err.text, place, strlen(place)) != 0 || !strstr(err.text, what))
		fail_msg("\"%s\" is not \"%s\" … \"%s\"", err.text, place, what);
}

static void sections_keys_values_and_lines_are_kept_as_written(void **state)
{
	static const char text[] = "# a comment\n"
				   "; another\n"
				   "\n"
				   "[one]\n"
				   "a=1\n"
				   "b\t=  two words \t\n"
				   "c = x = y # no comment\n"
				   "empty =\n"
				   "   \n"
				   "[two words]  \n"
				   "a = \xc3\xa9[]\"";
	AUTO_INI struct ini ini = {0};
	struct err err;

	(void)state;
	assert_int_equal(ini_parse(&ini, "name", text, sizeof(text) - 1, &err), 0);
	assert_string_equal(ini.path, "name");
	assert_int_equal(ini.count, 2);
	const struct ini_section *const one = ini_find_section(&ini, "one");
	assert_ptr_equal(one, &ini.sections[0]);
	assert_int_equal(one->line, 4);
	assert_int_equal(one->count, 4);
	assert_string_equal(ini_find_entry(one, "a")->value, "1");
	assert_string_equal(ini_find_entry(one, "b")->value, "two words");
	assert_int_equal(ini_find_entry(one, "b")->line, 6);
	assert_string_equal(ini_find_entry(one, "c")->value, "x = y # no comment");
	assert_string_equal(ini_find_entry(one, "empty")->value, "");
	assert_null(ini_find_entry(one, "d"));
	const struct ini_section *const two = ini_find_section(&ini, "two words");
	assert_non_null(two);
	assert_string_equal(two->entries[0].value, "\xc3\xa9[]\"");
	assert_null(ini_find_section(&ini, "three"));
}

static void an_empty_file_has_no_sections(void **state)
{
	AUTO_INI struct ini ini = {0};
	struct err err;

	(void)state;
	assert_int_equal(ini_parse(&ini, "f", "", 0, &err), 0);
	assert_int_equal(ini.count, 0);
}

static void what_does_not_fit_is_refused_with_its_line(void **state)
{
	static const struct {
		const char *text;
		const char *place;
		const char *what;
	} cases[] = {
		{"a = 1\n", "f:1: ", "before the first [section]"},
		{"\n\na\n", "f:3: ", "\"key = value\""},
		{"[s]\n= 1\n", "f:2: ", "\"key = value\""},
		{"[s]\n a = 1\n", "f:2: ", "column 1"},
		{"[s]\n\ta = 1\n", "f:2: ", "column 1"},
		{"[s]\na = 1\n  2\n", "f:3: ", "column 1"},
		{" [s]\n", "f:1: ", "column 1"},
		{" # c\n", "f:1: ", "column 1"},
		{"[s\n", "f:1: ", "does not end with ]"},
		{"[s] # c\n", "f:1: ", "does not end with ]"},
		{"[]\n", "f:1: ", "no name"},
		{"[", "f:1: ", "does not end with ]"},
		{"[s]\na = 1\na = 1\n", "f:3: ", "\"a\" again in [s], first on line 2"},
		{"[s]\na = 1\na= 2\n", "f:3: ", "\"a\" again"},
		{"[s]\n[t]\n[s]\n", "f:3: ", "\"[s]\" again, first on line 1"},
		{"[s]\r\n", "f:1: ", "0x0d at column 4"},
		{"# \x1b[31m\n", "f:1: ", "0x1b at column 3"},
		{"[s]\na = \x7f\n", "f:2: ", "0x7f at column 5"},
		{"\xef\xbb\xbf[s]\n", "f:1: ", "\"\\xef\\xbb\\xbf[s]\""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_refused(cases[i].text, strlen(cases[i].text), cases[i].place, cases[i].what);
}

static void a_nul_does_not_end_the_file(void **state)
{
	static const char text[] = "[s]\na = 1\0b\nc = 1\n";

	(void)state;
	assert_refused(text, sizeof(text) - 1, "f:2: ", "0x00 at column 6");
}

static void a_line_of_the_limit_is_read_and_a_longer_one_is_refused(void **state)
{
	char text[INI_MAX_LINE_BYTES + 16];
	const int head = snprintf(text, sizeof(text), "[s]\na = ");
	const size_t fits = 4 + INI_MAX_LINE_BYTES;
	AUTO_INI struct ini ini = {0};
	struct err err;

	(void)state;
	memset(text + head, 'x', sizeof(text) - (size_t)head);
	assert_int_equal(ini_parse(&ini, "f", text, fits, &err), 0);
	assert_int_equal(strlen(ini.sections[0].entries[0].value), INI_MAX_LINE_BYTES - 4);
	assert_refused(text, fits + 1, "f:2: ", "at most 4096");
}

static void a_reader_of_nothing_is_released(void **state)
{
	struct ini ini = {0};

	(void)state;
	ini_deinit(&ini);
	ini_add_entry(ini_add_section(&ini, "abc", 2, 7), "k", "v", 8);
	assert_string_equal(ini_find_entry(ini_find_section(&ini, "ab"), "k")->value, "v");
	ini_deinit(&ini);
	ini_deinit(&ini);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sections_keys_values_and_lines_are_kept_as_written),
		cmocka_unit_test(an_empty_file_has_no_sections),
		cmocka_unit_test(what_does_not_fit_is_refused_with_its_line),
		cmocka_unit_test(a_nul_does_not_end_the_file),
		cmocka_unit_test(a_line_of_the_limit_is_read_and_a_longer_one_is_refused),
		cmocka_unit_test(a_reader_of_nothing_is_released),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
