/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/base/base64url.h"

#include "broker/base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct vector {
	const char *bytes;
	size_t len;
	const char *encoded;
};

static void check(const struct vector *vectors, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		AUTO_BUF struct buf out;
		buf_init(&out, 64);
		base64url_encode(&out, vectors[i].bytes, vectors[i].len);
		assert_int_equal(out.len, strlen(vectors[i].encoded));
		assert_string_equal(out.data ? out.data : "", vectors[i].encoded);
	}
}

/* RFC 4648 section 10, without the padding. */
static void the_vectors_of_rfc_4648_come_out_without_padding(void **state)
{
	static const struct vector vectors[] = {
		{"", 0, ""},
		{"f", 1, "Zg"},
		{"fo", 2, "Zm8"},
		{"foo", 3, "Zm9v"},
		{"foob", 4, "Zm9vYg"},
		{"fooba", 5, "Zm9vYmE"},
		{"foobar", 6, "Zm9vYmFy"},
	};

	(void)state;
	check(vectors, ARRAY_LEN(vectors));
}

/* RFC 7515 appendix C. */
static void the_example_of_rfc_7515_comes_out(void **state)
{
	static const struct vector vectors[] = {{"\x03\xec\xff\xe0\xc1", 5, "A-z_4ME"}};

	(void)state;
	check(vectors, ARRAY_LEN(vectors));
}

static void the_last_two_characters_are_those_of_urls(void **state)
{
	static const struct vector vectors[] = {
		{"\xfb\xff\xbf", 3, "-_-_"},
		{"\x00\x00\x00", 3, "AAAA"},
		{"\xff", 1, "_w"},
	};

	(void)state;
	check(vectors, ARRAY_LEN(vectors));
}

static void what_is_encoded_is_appended(void **state)
{
	AUTO_BUF struct buf out;

	(void)state;
	buf_init(&out, 64);
	buf_add(&out, "head.");
	base64url_encode(&out, "foo", 3);
	assert_string_equal(out.data, "head.Zm9v");
}

static void what_was_encoded_is_decoded(void **state)
{
	(void)state;
	for (size_t len = 0; len < 256; len++) {
		unsigned char bytes[256] = {0};
		unsigned char back[256] = {0};
		AUTO_BUF struct buf text;
		for (size_t i = 0; i < len; i++)
			bytes[i] = (unsigned char)(i * 167 + len);
		buf_init(&text, 512);
		base64url_encode(&text, bytes, len);
		assert_int_equal(base64url_decode(back, len ? text.data : "", text.len), len);
		assert_memory_equal(back, bytes, len);
	}
}

static void what_is_no_base64url_is_not_decoded(void **state)
{
	static const char *const texts[] = {"Zm9v=", "Zm 9v", "Zm+v", "Zm/v", "Zm9\n", "\xc3\xa4"};
	char out[8];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		assert_int_equal(base64url_decode(out, texts[i], strlen(texts[i])), -1);
	/* Six bits are no byte. */
	assert_int_equal(base64url_decode(out, "Z", 1), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_vectors_of_rfc_4648_come_out_without_padding),
		cmocka_unit_test(the_example_of_rfc_7515_comes_out),
		cmocka_unit_test(the_last_two_characters_are_those_of_urls),
		cmocka_unit_test(what_is_encoded_is_appended),
		cmocka_unit_test(what_was_encoded_is_decoded),
		cmocka_unit_test(what_is_no_base64url_is_not_decoded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
