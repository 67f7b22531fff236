/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/google/jwt_times.h"

#include "broker/base/alloc.h"
#include "broker/base/base64url.h"
#include "broker/base/buf.h"
#include "broker/base/compiler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void the_times_are_those_of_the_payload(void **state)
{
	static const struct {
		const char *payload;
		struct jwt_times times;
	} cases[] = {
		{"{\"iat\":1700000000,\"exp\":1700003600}", {1700000000, 1700003600}},
		{"{\"iat\":1700000000.75,\"exp\":1700003600.25}", {1700000000, 1700003600}},
		{"{\"exp\":1700003600}", {0, 1700003600}},
		{"{\"iat\":\"1700000000\",\"exp\":null}", {0, 0}},
		{"{\"iat\":-1,\"exp\":0}", {0, 0}},
		{"{\"iat\":1e300,\"exp\":253402300800}", {0, 0}},
		{"{\"iat\":7,\"iat\":8}", {0, 0}},
		{"[1700000000]", {0, 0}},
		{"", {0, 0}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_BUF struct buf token;
		buf_init(&token, 512);
		buf_add(&token, "eyJhbGciOiJub25lIn0.");
		base64url_encode(&token, cases[i].payload, strlen(cases[i].payload));
		buf_add(&token, ".c2ln");
		const struct jwt_times times = jwt_read_times(token.data);
		assert_int_equal(times.issued_s, cases[i].times.issued_s);
		assert_int_equal(times.expires_s, cases[i].times.expires_s);
	}
}

static void what_is_no_jwt_says_nothing(void **state)
{
	static const char *const tokens[] = {"",	".",
					     "..",	"a",
					     "a.b",	"a.eyJpYXQiOjd9",
					     "a.+.c",	"PHNhbWwyOkFzc2VydGlvbj4=",
					     "a.e30=.c"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(tokens); i++) {
		const struct jwt_times times = jwt_read_times(tokens[i]);
		assert_int_equal(times.issued_s, 0);
		assert_int_equal(times.expires_s, 0);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_times_are_those_of_the_payload),
		cmocka_unit_test(what_is_no_jwt_says_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
