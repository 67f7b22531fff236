/* SPDX-License-Identifier: Apache-2.0 */
/* The drivers of scripts/bench: where an answer ends, and whom they call. */
#include "broker/base/compiler.h"
#include "tests/bench/answer.h"
#include "tests/bench/dial.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define HEAD "HTTP/1.1 200 OK\r\ncontent-LENGTH: 5\r\nX: y\r\n\r\n"

static void an_answer_is_whole_with_its_last_byte(void **state)
{
	static const char answer[] = HEAD "body!HTTP/1.1 500";
	const size_t whole = strlen(HEAD "body!");

	(void)state;
	for (size_t len = 0; len < whole; len++)
		assert_int_equal(answer_length(answer, len), 0);
	assert_int_equal(answer_length(answer, whole), whole);
	assert_int_equal(answer_length(answer, sizeof(answer) - 1), whole);
}

static void an_answer_without_a_length_ends_with_its_head(void **state)
{
	static const char answer[] = "HTTP/1.1 204 No Content\r\nContent-Lengthy: 9\r\n\r\n";

	(void)state;
	assert_int_equal(answer_length(answer, sizeof(answer) - 1), sizeof(answer) - 1);
	assert_int_equal(answer_status(answer, sizeof(answer) - 1), 204);
}

static void what_is_no_answer_has_no_status(void **state)
{
	static const char *const texts[] = {"", "HTTP/1.1 20", "SSH-2.0-OpenSSH_9.2\r\n",
					    "HTTP/2.0 200 OK\r\n\r\n"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		assert_int_equal(answer_status(texts[i], strlen(texts[i])), 0);
}

static void an_address_is_a_port_of_ipv4_or_a_path(void **state)
{
	static const char *const bad[] = {"",	     "127.0.0.1",    "127.0.0.1:",
					  ":80",     "localhost:1",  "127.0.0.1:65536",
					  "1.2.3:4", "relative/path"};
	struct dial dial;

	(void)state;
	assert_int_equal(dial_init(&dial, "127.0.0.1:65535"), 0);
	assert_int_equal(dial.address.any.sa_family, AF_INET);
	assert_int_equal(dial_init(&dial, "/run/x.sock"), 0);
	assert_string_equal(dial.address.path.sun_path, "/run/x.sock");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(dial_init(&dial, bad[i]), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_is_whole_with_its_last_byte),
		cmocka_unit_test(an_answer_without_a_length_ends_with_its_head),
		cmocka_unit_test(what_is_no_answer_has_no_status),
		cmocka_unit_test(an_address_is_a_port_of_ipv4_or_a_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
