/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/session_ports.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#define FIRST SESSION_PORTS_FIRST
#define LAST (SESSION_PORTS_FIRST + SESSION_PORTS_COUNT - 1)

static struct session_ports ports;

static int set_up(void **state)
{
	(void)state;
	session_ports_init(&ports, 0);
	return 0;
}

static void ports_are_below_those_that_the_kernel_gives_away(void **state)
{
	(void)state;
	assert_in_range(FIRST, 1024, UINT16_MAX);
	assert_int_equal(LAST, 32767); /* ip-sysctl: ip_local_port_range, 32768 to 60999 */
}

static void the_first_one_is_where_the_caller_says(void **state)
{
	(void)state;
	session_ports_init(&ports, SESSION_PORTS_COUNT - 1);
	assert_int_equal(session_ports_take(&ports), LAST);
	assert_int_equal(session_ports_take(&ports), FIRST);
}

static void each_is_taken_once_and_then_there_is_none(void **state)
{
	static unsigned char seen[UINT16_MAX + 1];

	(void)state;
	memset(seen, 0, sizeof(seen));
	for (int i = 0; i < SESSION_PORTS_COUNT; i++) {
		const uint16_t port = session_ports_take(&ports);
		assert_in_range(port, FIRST, LAST);
		assert_int_equal(seen[port]++, 0);
	}
	assert_int_equal(session_ports_take(&ports), 0);
	session_ports_give(&ports, FIRST + 7);
	assert_int_equal(session_ports_take(&ports), FIRST + 7);
}

/* The bug: ports were taken round and round, however long ago they had been given back. */
static void a_port_of_a_long_session_is_not_used_again_at_once(void **state)
{
	(void)state;
	const uint16_t held = session_ports_take(&ports);
	for (int i = 1; i < SESSION_PORTS_COUNT; i++)
		session_ports_give(&ports, session_ports_take(&ports));
	session_ports_give(&ports, held);
	for (int i = 1; i < SESSION_PORTS_COUNT; i++)
		assert_int_not_equal(session_ports_take(&ports), held);
	assert_int_equal(session_ports_take(&ports), held);
}

static void the_one_that_was_given_back_first_comes_first(void **state)
{
	uint16_t taken[4];

	(void)state;
	for (size_t i = 0; i < 4; i++)
		taken[i] = session_ports_take(&ports);
	static const size_t order[] = {2, 0, 3, 1};
	for (size_t i = 0; i < 4; i++)
		session_ports_give(&ports, taken[order[i]]);
	for (int i = 4; i < SESSION_PORTS_COUNT; i++)
		assert_int_equal(session_ports_take(&ports), FIRST + i);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(session_ports_take(&ports), taken[order[i]]);
}

static void one_that_was_asked_for_by_number_goes_to_the_end_too(void **state)
{
	(void)state;
	session_ports_claim(&ports, FIRST);
	session_ports_claim(&ports, FIRST); /* at another address */
	assert_int_equal(session_ports_take(&ports), FIRST + 1);
	session_ports_give(&ports, FIRST);
	session_ports_give(&ports, FIRST);
	for (int i = 2; i < SESSION_PORTS_COUNT; i++)
		assert_int_equal(session_ports_take(&ports), FIRST + i);
	assert_int_equal(session_ports_take(&ports), FIRST);
	assert_int_equal(session_ports_take(&ports), 0);
}

static void ports_of_others_are_left_alone(void **state)
{
	static const uint16_t others[] = {0, 1, 8174, FIRST - 1, LAST + 1, UINT16_MAX};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		session_ports_claim(&ports, others[i]);
		session_ports_give(&ports, others[i]);
	}
	for (int i = 0; i < SESSION_PORTS_COUNT; i++)
		assert_int_equal(session_ports_take(&ports), FIRST + i);
	assert_int_equal(session_ports_take(&ports), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(ports_are_below_those_that_the_kernel_gives_away, set_up),
		cmocka_unit_test_setup(the_first_one_is_where_the_caller_says, set_up),
		cmocka_unit_test_setup(each_is_taken_once_and_then_there_is_none, set_up),
		cmocka_unit_test_setup(a_port_of_a_long_session_is_not_used_again_at_once, set_up),
		cmocka_unit_test_setup(the_one_that_was_given_back_first_comes_first, set_up),
		cmocka_unit_test_setup(one_that_was_asked_for_by_number_goes_to_the_end_too,
				       set_up),
		cmocka_unit_test_setup(ports_of_others_are_left_alone, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
