/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void what_is_added_stands_in_order_and_ends_with_a_nul(void **state)
{
	AUTO_BUF struct buf buf;

	(void)state;
	buf_init(&buf, 1024);
	assert_null(buf.data);
	buf_add(&buf, "one");
	buf_add_bytes(&buf, "\0x", 2);
	buf_addf(&buf, " %d%s", 3, "four");
	assert_int_equal(buf.len, 11);
	assert_memory_equal(buf.data, "one\0x 3four", 12);
}

static void an_append_past_the_cap_adds_nothing(void **state)
{
	AUTO_BUF struct buf buf;

	(void)state;
	buf_init(&buf, 4);
	assert_int_equal(buf_append(&buf, "abc", 3), 0);
	assert_int_equal(buf_append(&buf, "de", 2), -1);
	assert_int_equal(buf_append(&buf, "d", SIZE_MAX), -1);
	assert_string_equal(buf.data, "abc");
	assert_int_equal(buf_append(&buf, "d", 1), 0);
	assert_int_equal(buf_append(&buf, "", 0), 0);
	assert_int_equal(buf_append(&buf, "e", 1), -1);
	assert_string_equal(buf.data, "abcd");
}

static void it_grows_by_any_step_and_keeps_what_it_had(void **state)
{
	AUTO_BUF struct buf buf;
	char chunk[1000];

	(void)state;
	buf_init(&buf, 1 << 20);
	for (size_t size = 0; size < sizeof(chunk); size += 37) {
		memset(chunk, (int)('a' + size % 26), size);
		const size_t before = buf.len;
		assert_int_equal(buf_append(&buf, chunk, size), 0);
		assert_int_equal(buf.len, before + size);
		assert_memory_equal(buf.data + before, chunk, size);
		assert_int_equal(buf.data[buf.len], '\0');
	}
	assert_int_equal(buf.data[0], 'a' + 37 % 26);
}

static void a_reset_forgets_the_content_and_keeps_the_memory(void **state)
{
	AUTO_BUF struct buf buf;

	(void)state;
	buf_init_sensitive(&buf, 64);
	buf_reset(&buf);
	buf_add(&buf, "secret");
	char *const data = buf.data;
	buf_reset(&buf);
	assert_int_equal(buf.len, 0);
	assert_ptr_equal(buf.data, data);
	/* A sensitive one leaves nothing behind. */
	assert_memory_equal(data, "\0\0\0\0\0\0", 6);
	assert_int_equal(buf.max_bytes, 64);
	assert_true(buf.sensitive);
}

static void a_sensitive_buffer_stays_one_when_it_grows(void **state)
{
	AUTO_BUF struct buf buf;

	(void)state;
	buf_init_sensitive(&buf, 1 << 16);
	for (int i = 0; i < 1000; i++)
		buf_add(&buf, "secret");
	assert_true(buf.sensitive);
	assert_int_equal(buf.max_bytes, 1 << 16);
	buf_deinit(&buf);
	buf_deinit(&buf);
	assert_null(buf.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_added_stands_in_order_and_ends_with_a_nul),
		cmocka_unit_test(an_append_past_the_cap_adds_nothing),
		cmocka_unit_test(it_grows_by_any_step_and_keeps_what_it_had),
		cmocka_unit_test(a_reset_forgets_the_content_and_keeps_the_memory),
		cmocka_unit_test(a_sensitive_buffer_stays_one_when_it_grows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
