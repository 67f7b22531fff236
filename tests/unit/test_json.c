/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static int clear_on_free(void **state)
{
	(void)state;
	json_clear_on_free();
	return 0;
}

static void an_object_is_read_and_its_strings_found(void **state)
{
	static const char text[] = "{\"a\":\"b\",\"n\":7}";

	(void)state;
	json_auto_t *object = json_read_object(text, strlen(text));
	assert_string_equal(json_get_string(object, "a"), "b");
	assert_null(json_get_string(object, "n"));
	assert_null(json_get_string(object, "absent"));
	assert_null(json_get_string(NULL, "a"));
}

static void what_is_no_single_object_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		" ",
		"null",
		"7",
		"\"a\"",
		"[]",
		"[{}]",
		"{",
		"{}x",
		"{}{}",
		"{\"a\":1,\"a\":2}",
		"{\"a\":\"\\u0000\"}",
		"{\"a\":\"\xff\"}",
		"{'a':1}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_null(json_read_object(bad[i], strlen(bad[i])));
	assert_null(json_read_object(NULL, 0));
}

static void nesting_without_end_is_refused(void **state)
{
	static char text[100000];

	(void)state;
	memset(text, '[', sizeof(text));
	memcpy(text, "{\"a\":", 5);
	assert_null(json_read_object(text, sizeof(text)));
}

/* Strings that outgrow jansson's buffers, which it then copies: the clearing must know their sizes. */
static void large_values_survive_the_clearing_of_others(void **state)
{
	static char text[100000];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	json_auto_t *object = json_pack("{s:s}", "a", text);
	char *const dumped = json_dumps(object, JSON_COMPACT);
	json_auto_t *again = json_read_object(dumped, strlen(dumped));
	assert_true(json_equal(object, again));
	assert_int_equal(json_object_set_new(again, "a", json_string("short")), 0);
	assert_string_equal(json_get_string(again, "a"), "short");
	free(dumped);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_object_is_read_and_its_strings_found),
		cmocka_unit_test(what_is_no_single_object_is_refused),
		cmocka_unit_test(nesting_without_end_is_refused),
		cmocka_unit_test(large_values_survive_the_clearing_of_others),
	};

	return cmocka_run_group_tests(tests, clear_on_free, NULL);
}
