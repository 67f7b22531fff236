/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/plan/nameservers.h"

#include "broker/base/compiler.h"
#include "broker/base/strv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* resolv.conf(5): "The keyword and value must appear on a single line, and the keyword must start the line." */
static const struct {
	const char *text;
	const char *found[3];
} cases[] = {
	{"", {NULL}},
	{"nameserver 10.0.0.1\n", {"10.0.0.1"}},
	{"nameserver 10.0.0.1", {"10.0.0.1"}},
	{"search x\nnameserver\t 10.0.0.1 \noptions ndots:2\nnameserver fe80::1%eth0\r\n",
	 {"10.0.0.1", "fe80::1"}},
	{"#nameserver 10.0.0.1\n; nameserver 10.0.0.2\n nameserver 10.0.0.3\n", {NULL}},
	{"nameserver\nnameserver \nnameservers 10.0.0.1\nNAMESERVER 10.0.0.2\n", {NULL}},
};

static void the_keyword_starts_the_line(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_STRV struct strv found = {0};
		size_t expected = 0;
		nameservers_parse(cases[i].text, strlen(cases[i].text), &found);
		for (; expected < 3 && cases[i].found[expected]; expected++)
			assert_true(strv_contains(&found, cases[i].found[expected]));
		assert_int_equal(found.count, expected);
	}
}

static void a_line_with_a_nul_is_none(void **state)
{
	static const char text[] = "nameserver 10.0\0.0.1\nnameserver 10.0.0.2\n";
	AUTO_STRV struct strv found = {0};

	(void)state;
	nameservers_parse(text, sizeof(text) - 1, &found);
	assert_int_equal(found.count, 1);
	assert_string_equal(found.items[0], "10.0.0.2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_keyword_starts_the_line),
		cmocka_unit_test(a_line_with_a_nul_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
