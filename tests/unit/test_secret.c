/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/base/secret.h"

#include "broker/base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void the_bytes_are_kept_whole(void **state)
{
	static const char bytes[] = "with\0a NUL";
	AUTO_SECRET struct secret *secret = secret_new(bytes, sizeof(bytes) - 1);
	AUTO_SECRET struct secret *empty = secret_new(NULL, 0);

	(void)state;
	assert_int_equal(secret_len(secret), sizeof(bytes) - 1);
	assert_memory_equal(secret_bytes(secret), bytes, sizeof(bytes));
	assert_int_equal(secret_len(empty), 0);
	assert_string_equal(secret_bytes(empty), "");
}

static void the_fingerprint_is_the_start_of_the_sha_256(void **state)
{
	/* FIPS 180-2, appendix B.1, and the hash of nothing. */
	AUTO_SECRET struct secret *abc = secret_new("abc", 3);
	AUTO_SECRET struct secret *empty = secret_new("", 0);

	(void)state;
	assert_string_equal(secret_fingerprint(abc), "ba7816bf8f01cfea");
	assert_string_equal(secret_fingerprint(empty), "e3b0c44298fc1c14");
	assert_int_equal(strlen(secret_fingerprint(abc)) + 1, SECRET_FINGERPRINT_SIZE);
}

static void equal_bytes_are_equal_secrets(void **state)
{
	static const char *const others[] = {"", "toke", "token ", "Token", "tokeN"};
	AUTO_SECRET struct secret *token = secret_new("token", 5);
	AUTO_SECRET struct secret *same = secret_new("token", 5);

	(void)state;
	assert_true(secret_equal(token, token));
	assert_true(secret_equal(token, same));
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		AUTO_SECRET struct secret *other = secret_new(others[i], strlen(others[i]));
		assert_false(secret_equal(token, other));
	}
}

static void it_lives_as_long_as_its_last_reference(void **state)
{
	struct secret *const first = secret_new("token", 5);
	AUTO_SECRET struct secret *second = secret_ref(first);

	(void)state;
	secret_unref(first);
	assert_string_equal(secret_bytes(second), "token");
	secret_unref(NULL);
}

static void a_buffer_that_becomes_one_is_empty_afterwards(void **state)
{
	AUTO_BUF struct buf buf;

	(void)state;
	buf_init_sensitive(&buf, 64);
	buf_add(&buf, "token");
	AUTO_SECRET struct secret *secret = secret_take_buf(&buf);
	assert_string_equal(secret_bytes(secret), "token");
	assert_null(buf.data);
	assert_int_equal(buf.len, 0);
	AUTO_SECRET struct secret *empty = secret_take_buf(&buf);
	assert_int_equal(secret_len(empty), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_bytes_are_kept_whole),
		cmocka_unit_test(the_fingerprint_is_the_start_of_the_sha_256),
		cmocka_unit_test(equal_bytes_are_equal_secrets),
		cmocka_unit_test(it_lives_as_long_as_its_last_reference),
		cmocka_unit_test(a_buffer_that_becomes_one_is_empty_afterwards),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
