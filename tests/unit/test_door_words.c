/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/run/door_words.h"

#include "broker/base/err.h"
#include "sandbox/door/exit_code.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void its_own_line_is_told_and_nothing_beside_it(void **state)
{
	struct err err = {0};

	(void)state;
	door_words("noise\npostern-door: the broker says: late\nmore\n", EXIT_REFUSED, &err);
	assert_int_equal(err.code, ERR_SYSTEM);
	assert_non_null(strstr(err.text, "the broker says: late"));
	assert_null(strstr(err.text, "more"));
	assert_null(strstr(err.text, "noise"));
}

static void where_another_way_helps_it_is_named(void **state)
{
	static const int helped[] = {EXIT_ALIEN, EXIT_DEVICE, EXIT_CONNECT, EXIT_CONFINE};
	struct err err = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(helped); i++) {
		door_words("postern-door: x\n", helped[i], &err);
		assert_non_null(strstr(err.text, "--attach gateway"));
	}
}

static void silence_is_told_by_its_status(void **state)
{
	struct err err = {0};

	(void)state;
	door_words("", 159, &err);
	assert_non_null(strstr(err.text, "159"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(its_own_line_is_told_and_nothing_beside_it),
		cmocka_unit_test(where_another_way_helps_it_is_named),
		cmocka_unit_test(silence_is_told_by_its_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
