/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers of `docker container inspect` as Docker 20.10 and Podman 4.3 give them, cut to what is read.
 */
#include "sandbox/run/container.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void read_it(struct container *container, const char *text)
{
	*container = (struct container){0};
	assert_int_equal(container_read(container, text, strlen(text)), 0);
}

static void a_created_container_has_not_started(void **state)
{
	AUTO_CONTAINER struct container c;

	(void)state;
	read_it(&c, "[{\"State\":{\"Status\":\"created\",\"Running\":false,\"ExitCode\":127,"
		    "\"StartedAt\":\"0001-01-01T00:00:00Z\"},"
		    "\"NetworkSettings\":{\"Networks\":{\"bridge\":{\"IPAddress\":\"\","
		    "\"GlobalIPv6Address\":\"\"}}},\"Config\":{\"Labels\":{}}}]");
	assert_false(c.running);
	assert_false(c.started);
	assert_int_equal(json_array_size(c.addresses), 0);
	assert_int_equal(c.launcher.pid, 0);
}

static void every_network_s_addresses_are_read(void **state)
{
	AUTO_CONTAINER struct container c;

	(void)state;
	/* The top-level IPAddress is empty on custom networks: swipely/iam-docker#6. */
	read_it(&c, "[{\"State\":{\"Running\":true,\"StartedAt\":\"2026-11-29T15:17:09.1Z\"},"
		    "\"NetworkSettings\":{\"IPAddress\":\"\",\"Networks\":{"
		    "\"a\":{\"IPAddress\":\"172.18.0.2\",\"GlobalIPv6Address\":\"fd00::2\"},"
		    "\"b\":{\"IPAddress\":\"172.19.0.3\",\"GlobalIPv6Address\":\"\"}}}}]");
	assert_true(c.running && c.started);
	assert_int_equal(json_array_size(c.addresses), 3);
	assert_string_equal(json_string_value(json_array_get(c.addresses, 0)), "172.18.0.2");
	assert_string_equal(json_string_value(json_array_get(c.addresses, 1)), "fd00::2");
	assert_string_equal(json_string_value(json_array_get(c.addresses, 2)), "172.19.0.3");
}

static void what_is_no_address_is_none(void **state)
{
	AUTO_CONTAINER struct container c;

	(void)state;
	read_it(&c,
		"[{\"State\":{\"Running\":true},\"NetworkSettings\":{\"Networks\":{"
		"\"a\":{\"IPAddress\":\"172.18.0.2/16\"},\"b\":{\"IPAddress\":7},\"c\":null}}}]");
	assert_int_equal(json_array_size(c.addresses), 0);
}

static void the_launcher_is_named_by_labels(void **state)
{
	AUTO_CONTAINER struct container c;

	(void)state;
	read_it(&c, "[{\"State\":{\"Running\":false,\"OOMKilled\":true,\"ExitCode\":137},"
		    "\"Config\":{\"Labels\":{\"postern.launcher-pid\":\"4711\","
		    "\"postern.launcher-start\":\"18446744073709551615\","
		    "\"postern.launcher-namespace\":\"4026531836\"}}}]");
	assert_int_equal(c.launcher.pid, 4711);
	assert_true(c.launcher.start == UINT64_MAX);
	assert_int_equal(c.launcher.pid_namespace, 4026531836);
	assert_true(c.oom_killed);
	assert_int_equal(c.exit_status, 137);
}

static void anything_else_is_refused(void **state)
{
	static const char *const texts[] = {"",	    "{}", "[]", "[{}]", "[{\"State\":7}]",
					    "null", "[[["};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		AUTO_CONTAINER struct container c = {0};
		assert_int_equal(container_read(&c, texts[i], strlen(texts[i])), -1);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_created_container_has_not_started),
		cmocka_unit_test(every_network_s_addresses_are_read),
		cmocka_unit_test(what_is_no_address_is_none),
		cmocka_unit_test(the_launcher_is_named_by_labels),
		cmocka_unit_test(anything_else_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
