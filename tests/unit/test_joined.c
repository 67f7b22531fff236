/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers of `container inspect DOOR SANDBOX` as Docker 20.10 and Podman 4.3 give them, cut to what is read.
 */
#include "sandbox/run/joined.h"

#include "broker/base/alloc.h"
#include "broker/base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define DOOR "d00r"
#define OF_DOOR                                                                        \
	"{\"Id\":\"" DOOR "\",\"HostConfig\":{\"NetworkMode\":\"bridge\",\"Runtime\":" \
	"\"runc\",\"UsernsMode\":\"\",\"CapAdd\":[\"NET_ADMIN\"]}}"

static int check(const char *door, const char *sandbox, struct err *err)
{
	AUTO_FREE char *text = xasprintf("[%s,%s]", door, sandbox);

	return joined_check(text, strlen(text), DOOR, err);
}

static void the_one_that_was_asked_for_is_good(void **state)
{
	struct err err = {0};

	(void)state;
	if (check(OF_DOOR,
		  "{\"HostConfig\":{\"NetworkMode\":\"container:" DOOR "\",\"CapAdd\":null,"
		  "\"Privileged\":false,\"PidMode\":\"\",\"Runtime\":\"runc\",\"UsernsMode\":\"\"}}",
		  &err))
		fail_msg("%s", err.text);
	if (check("{\"Id\":\"" DOOR
		  "\",\"OCIRuntime\":\"crun\",\"HostConfig\":{\"Runtime\":\"oci\"}}",
		  "{\"OCIRuntime\":\"crun\",\"HostConfig\":{\"NetworkMode\":\"container:" DOOR "\","
		  "\"CapAdd\":[],\"Privileged\":false,\"PidMode\":\"private\",\"Runtime\":\"oci\"}}",
		  &err))
		fail_msg("%s", err.text);
}

/* One thing each is otherwise; the others are as they should be. */
static const struct {
	const char *network;
	const char *rights;
	const char *runtime;
	const char *said;
} cases[] = {
	{"bridge", NULL, NULL, "NetworkMode"},
	{"host", NULL, NULL, "NetworkMode"},
	{"container:other", NULL, NULL, "NetworkMode"},
	{"container:" DOOR "x", NULL, NULL, "NetworkMode"},
	{NULL, "\"Privileged\":true,\"CapAdd\":null", NULL, "privilege"},
	{NULL, "\"CapAdd\":null", NULL, "privilege"},
	{NULL, "\"Privileged\":false,\"CapAdd\":[\"NET_ADMIN\"]", NULL, "capabilities"},
	{NULL, "\"Privileged\":false,\"CapAdd\":\"ALL\"", NULL, "capabilities"},
	{NULL, "\"Privileged\":false,\"PidMode\":\"host\"", NULL, "PidMode"},
	{NULL, "\"Privileged\":false,\"PidMode\":\"container:" DOOR "\"", NULL, "PidMode"},
	{NULL, NULL, "\"Runtime\":\"runsc\"", "runtime"},
	{NULL, NULL, "\"Runtime\":\"crun\"", "runtime"},
	{NULL, NULL, "\"X\":1", "runtime"},
	{NULL, NULL, "\"Runtime\":\"runc\",\"UsernsMode\":\"host\"", "UsernsMode"},
};

static void whatever_is_otherwise_is_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = {0};
		AUTO_FREE char *sandbox =
			xasprintf("{\"HostConfig\":{\"NetworkMode\":\"%s\",%s,%s}}",
				  cases[i].network ? cases[i].network : "container:" DOOR,
				  cases[i].rights ? cases[i].rights :
						    "\"Privileged\":false,\"CapAdd\":null",
				  cases[i].runtime ? cases[i].runtime : "\"Runtime\":\"runc\"");
		assert_int_equal(check(OF_DOOR, sandbox, &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
		if (!strstr(err.text, cases[i].said))
			fail_msg("%zu: %s", i, err.text);
		assert_non_null(strstr(err.text, "not started"));
	}
}

static void an_answer_of_another_form_is_none(void **state)
{
	static const char *const answers[] = {"", "[]", "{}", "[" OF_DOOR "]", "[{},{}]", "["};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		struct err err = {0};
		assert_int_equal(joined_check(answers[i], strlen(answers[i]), DOOR, &err), -1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_one_that_was_asked_for_is_good),
		cmocka_unit_test(whatever_is_otherwise_is_named),
		cmocka_unit_test(an_answer_of_another_form_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
