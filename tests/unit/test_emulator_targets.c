/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is not in the route table does not exist: hostile targets, and every near miss of a real path.
 */
#include "emulator/emulator.h"

#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/base/compiler.h"
#include "broker/base/err.h"
#include "broker/base/file.h"
#include "tests/unit/emulator_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define VECTORS VECTORS_DIR "/emulator_hostile_targets.txt"
#define VECTORS_MAX_BYTES ((size_t)1 << 20)

/* A profile's emulator with the paths that exist in it. */
struct world {
	struct emulator *emulator;
	struct spelling spellings[SPELLINGS_MAX];
	size_t count;
	struct emulator_reply not_found; /* the first 404, to which every other is compared */
};

static int set_up(void **state)
{
	struct world *const world = xcalloc(1, sizeof(*world));
	const struct emulator_request request = fixture_request("GET", "/x", 2);

	world->emulator = emulator_new(profiles[PROFILE_NUMBERED].identity);
	world->count = fixture_spellings(&profiles[PROFILE_NUMBERED], world->spellings);
	assert_true(emulator_answer(world->emulator, &request, &world->not_found));
	expect_refusal(&world->not_found, EMULATOR_REFUSAL_PATH, "/x");
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *const world = *state;

	emulator_free(world->emulator);
	free(world);
	return 0;
}

/* Member for member, and the same bytes at the same places: nothing of the request is in it. */
static void expect_not_found(const struct world *world, const char *method, const char *target,
			     size_t len)
{
	const struct emulator_request request = fixture_request(method, target, len);
	struct emulator_reply reply;

	memset(&reply, 0xa5, sizeof(reply));
	const bool whole = emulator_answer(world->emulator, &request, &reply);
	const struct emulator_reply *const expected = &world->not_found;
	if (whole && reply.status == expected->status &&
	    reply.content_type == expected->content_type && reply.body == expected->body &&
	    reply.body_len == expected->body_len && reply.allow == expected->allow &&
	    reply.close == expected->close && reply.route == expected->route &&
	    reply.refusal == expected->refusal)
		return;
	fail_msg("%s %.*s: not the one 404 (status %u)", method, (int)len, len ? target : "",
		 reply.status);
}

static unsigned hex_digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *const at = c ? strchr(digits, c) : NULL;

	assert_non_null(at);
	return (unsigned)(at - digits);
}

/* Undoes the escapes of a line of the vector file in place and returns the length. */
static size_t unescape(char *line)
{
	size_t len = 0;

	for (const char *from = line; *from; len++) {
		if (*from != '\\') {
			line[len] = *from++;
		} else if (from[1] == '\\') {
			line[len] = '\\';
			from += 2;
		} else {
			assert_int_equal(from[1], 'x');
			line[len] = (char)(hex_digit(from[2]) << 4 | hex_digit(from[3]));
			from += 4;
		}
	}
	return len;
}

static void every_hostile_target_gets_the_same_404(void **state)
{
	static const char *const methods[] = {"GET", "HEAD", "POST", "DELETE", "get"};
	AUTO_BUF struct buf text;
	struct err err;
	size_t vectors = 0;

	buf_init(&text, VECTORS_MAX_BYTES);
	if (file_read(VECTORS, &text, NULL, &err))
		fail_msg("%s", err.text);
	for (char *rest = text.data, *line; (line = strsep(&rest, "\n"));) {
		if (line[0] == '#' || !line[0])
			continue;
		const size_t len = unescape(line);
		for (size_t m = 0; m < ARRAY_LEN(methods); m++)
			expect_not_found(*state, methods[m], line, len);
		vectors++;
	}
	assert_in_range(vectors, 300, 10000);
}

static void the_empty_target_gets_the_same_404(void **state)
{
	expect_not_found(*state, "GET", "", 0);
	expect_not_found(*state, "GET", NULL, 0);
}

/* Long ones, up to the 8 KiB that a request line may have. */
static void a_long_target_gets_the_same_404(void **state)
{
	static const char *const units[] = {"a",   "/",	      "/a",  "../",  "./",
					    "%2f", "%2e%2e/", "%40", "\xff", "{acct}"};
	static const char *const heads[] = {
		"/",
		"/computeMetadata/v1/instance/",
		"/computeMetadata/v1/instance/service-accounts/",
		"/computeMetadata/v1/instance/service-accounts/default",
		"/computeMetadata/v1/instance/service-accounts/default/token",
	};
	static const size_t lengths[] = {4096, 8192};
	char target[8192];

	for (size_t h = 0; h < ARRAY_LEN(heads); h++) {
		for (size_t u = 0; u < ARRAY_LEN(units); u++) {
			const size_t head_len = strlen(heads[h]);
			const size_t unit_len = strlen(units[u]);
			memcpy(target, heads[h], head_len);
			for (size_t i = head_len; i < sizeof(target); i++)
				target[i] = units[u][(i - head_len) % unit_len];
			for (size_t l = 0; l < ARRAY_LEN(lengths); l++)
				expect_not_found(*state, "GET", target, lengths[l]);
		}
	}
}

static bool exists(const struct world *world, const char *target, size_t len)
{
	const char *const mark = memchr(target, '?', len);
	const size_t path_len = mark ? (size_t)(mark - target) : len;

	for (size_t i = 0; i < world->count; i++) {
		const char *const path = world->spellings[i].path;
		if (strlen(path) == path_len && !memcmp(path, target, path_len))
			return true;
	}
	return false;
}

/* Every byte that is special to somebody, and some that are not. */
static const char bytes[] = "\0\t\n\r !#%&*+-./0:;=?@A\\_az~\x7f\x80\xff";

/* One change may lead to another path of the table, or put a "?" where its query begins. */
static void check_near_miss(const struct world *world, const char *target, size_t len)
{
	if (!exists(world, target, len))
		expect_not_found(world, "GET", target, len);
}

static void check_byte(const struct world *world, const char *path, size_t at, char byte)
{
	const size_t len = strlen(path);
	char target[256];

	/* Put in. */
	memcpy(target, path, at);
	target[at] = byte;
	memcpy(target + at + 1, path + at, len - at);
	check_near_miss(world, target, len + 1);
	/* In the place of another, or of that one's other case. */
	if (at == len)
		return;
	memcpy(target, path, len);
	target[at] = byte;
	check_near_miss(world, target, len);
	target[at] = (char)(path[at] ^ 0x20);
	check_near_miss(world, target, len);
}

static void every_path_with_one_byte_changed_or_added_gets_the_same_404(void **state)
{
	const struct world *const world = *state;

	for (size_t i = 0; i < world->count; i++)
		for (size_t at = 0; at <= strlen(world->spellings[i].path); at++)
			for (size_t b = 0; b < sizeof(bytes) - 1; b++)
				check_byte(world, world->spellings[i].path, at, bytes[b]);
}

static void every_path_with_bytes_cut_out_gets_the_same_404(void **state)
{
	const struct world *const world = *state;

	for (size_t i = 0; i < world->count; i++) {
		const char *const path = world->spellings[i].path;
		const size_t len = strlen(path);
		for (size_t from = 0; from < len; from++) {
			for (size_t to = from + 1; to <= len; to++) {
				char target[256];
				memcpy(target, path, from);
				memcpy(target + from, path + to, len - to);
				check_near_miss(world, target, len - (to - from));
			}
		}
	}
}

static void every_path_with_something_before_or_behind_gets_the_same_404(void **state)
{
	static const char *const extras[] = {
		"/.",		"/..",	   "//",  "/x",	 ".",	 ".json",  "%00",
		"%2f",		"%2F",	   "%20", "%3f", "%23",	 ";",	   ";a=b",
		"&a=b",		"#",	   "#a",  "\\",	 "\xff", "/token", "/default",
		"/attributes/", "/%2e%2e", "@",	  "%40", "*",	 "//x",
	};
	const struct world *const world = *state;

	for (size_t i = 0; i < world->count; i++) {
		for (size_t e = 0; e < ARRAY_LEN(extras); e++) {
			char target[256];
			int len = snprintf(target, sizeof(target), "%s%s", world->spellings[i].path,
					   extras[e]);
			check_near_miss(world, target, (size_t)len);
			len = snprintf(target, sizeof(target), "%s%s", extras[e],
				       world->spellings[i].path);
			check_near_miss(world, target, (size_t)len);
		}
	}
}

static void a_query_may_hold_any_printable_byte_and_no_other(void **state)
{
	const struct world *const world = *state;

	for (int byte = 0; byte < 256; byte++) {
		const char target[] = {'/', '?', 'a', '=', (char)byte};
		const struct emulator_request request =
			fixture_request("GET", target, sizeof(target));
		struct emulator_reply reply;
		assert_true(emulator_answer(world->emulator, &request, &reply));
		if (byte > 0x20 && byte < 0x7f && byte != '#')
			expect_content(&reply, EMULATOR_ROUTE_DIRECTORY, "application/text",
				       "computeMetadata/\n", "a byte of the query");
		else
			expect_not_found(world, "GET", target, sizeof(target));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_hostile_target_gets_the_same_404),
		cmocka_unit_test(the_empty_target_gets_the_same_404),
		cmocka_unit_test(a_long_target_gets_the_same_404),
		cmocka_unit_test(every_path_with_one_byte_changed_or_added_gets_the_same_404),
		cmocka_unit_test(every_path_with_bytes_cut_out_gets_the_same_404),
		cmocka_unit_test(every_path_with_something_before_or_behind_gets_the_same_404),
		cmocka_unit_test(a_query_may_hold_any_printable_byte_and_no_other),
	};

	return cmocka_run_group_tests_name("emulator targets", tests, set_up, tear_down);
}
