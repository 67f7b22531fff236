/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/attach_message.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#define KEY "0123456789abcdef0123456789abcdef"

static void the_three_messages_are_read(void **state)
{
	static const struct {
		const char *text;
		enum attach_message_kind kind;
		const char *key;
	} cases[] = {
		{"T " KEY, ATTACH_MESSAGE_TICKET, KEY},
		{"R " KEY, ATTACH_MESSAGE_REOFFER, KEY},
		{"D", ATTACH_MESSAGE_SOCKETS, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *const text = cases[i].text;
		struct attach_message message;
		assert_int_equal(attach_message_read(text, strlen(text), &message), 0);
		assert_int_equal(message.kind, cases[i].kind);
		if (!cases[i].key)
			assert_null(message.key);
		else
			assert_memory_equal(message.key, cases[i].key, ATTACH_KEY_LEN);
	}
}

static void everything_else_is_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"T",
		"T ",
		"D ",
		"DD",
		"d",
		"t " KEY,
		"X " KEY,
		"T" KEY,
		"T  " KEY,
		"T\t" KEY,
		"T " KEY "0",
		"T " KEY "\n",
		"R 0123456789abcdef0123456789abcde",
		"T 0123456789ABCDEF0123456789abcdef",
		"T 0123456789abcdeg0123456789abcdef",
		" T " KEY,
		"ok " KEY,
		"go",
		"end",
	};
	static const char nul[] = "T 0123456789abcdef\0"
				  "123456789abcdef";
	struct attach_message message;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(attach_message_read(texts[i], strlen(texts[i]), &message), -1);
	assert_int_equal(attach_message_read(nul, sizeof(nul) - 1, &message), -1);
	assert_int_equal(attach_message_read("D", 0, &message), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_three_messages_are_read),
		cmocka_unit_test(everything_else_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
