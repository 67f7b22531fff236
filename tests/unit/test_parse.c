/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/base/parse.h"
#include "broker/base/strv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void a_number_is_digits_within_its_bounds(void **state)
{
	static const struct {
		const char *text;
		uint64_t min;
		uint64_t max;
		uint64_t value;
	} good[] = {
		{"0", 0, 10, 0},
		{"10", 10, 10, 10},
		{"007", 0, 10, 7},
		{"18446744073709551615", 0, UINT64_MAX, UINT64_MAX},
	};
	static const char *const bad[] = {
		"",
		"-1",
		"+1",
		" 1",
		"1 ",
		"1x",
		"0x1",
		"1.0",
		"101",
		"18446744073709551616",
		"99999999999999999999999999",
		"\xd9\xa1",
	};
	uint64_t value;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		assert_int_equal(parse_uint(good[i].text, good[i].min, good[i].max, &value), 0);
		assert_true(value == good[i].value);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		value = 42;
		assert_int_equal(parse_uint(bad[i], 0, 100, &value), -1);
		assert_true(value == 42);
	}
	assert_int_equal(parse_uint("9", 10, 100, &value), -1);
}

static void a_duration_is_digits_and_one_unit(void **state)
{
	static const struct {
		const char *text;
		int64_t seconds;
	} good[] = {{"0s", 0},
		    {"90s", 90},
		    {"5m", 300},
		    {"12h", 43200},
		    {"2147483647h", 7730941129200}};
	static const char *const bad[] = {
		"",    "s",	"5",	"5 m",	       "5ms",
		"5M",  "5d",	"-5s",	"+5s",	       " 5s",
		"5s ", "1h30m", "1.5h", "2147483648s", "18446744073709551616s",
	};
	int64_t seconds;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		assert_int_equal(parse_duration_s(good[i].text, 0, INT64_MAX, &seconds), 0);
		assert_true(seconds == good[i].seconds);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		seconds = 42;
		assert_int_equal(parse_duration_s(bad[i], 0, INT64_MAX, &seconds), -1);
		assert_true(seconds == 42);
	}
	assert_int_equal(parse_duration_s("299s", 300, 43200, &seconds), -1);
	assert_int_equal(parse_duration_s("721m", 300, 43200, &seconds), -1);
	assert_int_equal(parse_duration_s("720m", 300, 43200, &seconds), 0);
}

static void a_bool_is_yes_or_no(void **state)
{
	static const char *const bad[] = {"", "y", "Yes", "NO", "true", "1", "yes ", "yesno"};
	bool value = false;

	(void)state;
	assert_int_equal(parse_bool("yes", &value), 0);
	assert_true(value);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(parse_bool(bad[i], &value), -1);
	assert_true(value);
	assert_int_equal(parse_bool("no", &value), 0);
	assert_false(value);
}

static void a_text_is_of_ascii_letters_digits_and_the_others(void **state)
{
	(void)state;
	assert_true(text_is_of("aZ09", ""));
	assert_true(text_is_of("a-b", "-"));
	assert_false(text_is_of("", "-"));
	assert_false(text_is_of("a-b", "_"));
	assert_false(text_is_of("a b", "-"));
	assert_false(text_is_of("\xc3\xa9", "-"));
}

static void a_host_name_is_labels_and_single_dots(void **state)
{
	static const char *const good[] = {
		"a",
		"localhost",
		"a.test",
		"A-1.b-2.TEST",
		"127.0.0.1",
		"x--y.test",
		"abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghij123.test",
	};
	static const char *const bad[] = {
		"",
		".",
		"a.",
		".a",
		"a..b",
		"-a",
		"a-",
		"a-.b",
		"a.-b",
		"a_b",
		"a b",
		"a:80",
		"a/b",
		"[::1]",
		"::1",
		"a%b",
		"\xc3\xa9.test",
		"abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghij1234.test",
	};
	char longest[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		if (!text_is_host_name(good[i]))
			fail_msg("%s is refused", good[i]);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (text_is_host_name(bad[i]))
			fail_msg("%s is accepted", bad[i]);
	for (size_t i = 0; i < sizeof(longest); i++)
		longest[i] = i % 2 ? '.' : 'a';
	longest[253] = '\0';
	assert_true(text_is_host_name(longest));
	memcpy(longest + 253, "aa", 3);
	assert_false(text_is_host_name(longest));
}

static void an_email_has_one_at_and_a_domain_with_a_dot(void **state)
{
	static const char *const good[] = {
		"a@b.c",
		"agent@my-project.iam.gserviceaccount.com",
		"agent@p.example.com.iam.gserviceaccount.com",
		"123-compute@developer.gserviceaccount.com",
		"first.last+tag_x@a.test",
	};
	static const char *const bad[] = {
		"",	   "@",	      "a",	 "a@b",	    "@b.c",	 "a@",
		"a@b@c.d", "a@.b",    "a@b.",	 "a@b..c",  "a@-b.c",	 "a@b_c.d",
		"a b@c.d", "a/b@c.d", "a@b.c/d", "a?@b.c",  "a#@b.c",	 "a:@b.c",
		"a%@b.c",  "a,@b.c",  "a@b.c\n", "a\\@b.c", "\"a\"@b.c", "\xc3\xa9@b.c",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		if (!text_is_email(good[i]))
			fail_msg("%s is refused", good[i]);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (text_is_email(bad[i]))
			fail_msg("%s is accepted", bad[i]);
}

static void a_list_splits_at_commas_and_has_no_empty_item(void **state)
{
	static const char *const bad[] = {"", " ", ",", "a,", ",a", "a,,b", "a, ,b"};
	AUTO_STRV struct strv list = {0};
	AUTO_STRV struct strv copy = {0};

	(void)state;
	assert_int_equal(strv_split(&list, " a\t, b c ,d"), 0);
	assert_int_equal(list.count, 3);
	assert_string_equal(list.items[0], "a");
	assert_string_equal(list.items[1], "b c");
	assert_string_equal(list.items[2], "d");
	strv_copy(&copy, &list);
	assert_true(strv_equal(&list, &copy));
	assert_true(strv_contains(&copy, "b c"));
	assert_false(strv_contains(&copy, "b"));
	strv_add(&copy, "e", 1);
	assert_false(strv_equal(&list, &copy));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		AUTO_STRV struct strv none = {0};
		assert_int_equal(strv_split(&none, bad[i]), -1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_number_is_digits_within_its_bounds),
		cmocka_unit_test(a_duration_is_digits_and_one_unit),
		cmocka_unit_test(a_bool_is_yes_or_no),
		cmocka_unit_test(a_text_is_of_ascii_letters_digits_and_the_others),
		cmocka_unit_test(a_host_name_is_labels_and_single_dots),
		cmocka_unit_test(an_email_has_one_at_and_a_domain_with_a_dot),
		cmocka_unit_test(a_list_splits_at_commas_and_has_no_empty_item),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
