/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The replies of `token`, and that no other reply has anything of a token or of another identity.
 */
#include "emulator/emulator.h"

#include "broker/base/buf.h"
#include "broker/base/compiler.h"
#include "broker/base/secret.h"
#include "tests/unit/emulator_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void expect_token_json(const struct emulator_reply *reply, unsigned status, const char *body)
{
	assert_int_equal(reply->status, status);
	assert_string_equal(reply->content_type, "application/json");
	assert_int_equal(reply->body_len, strlen(body));
	assert_memory_equal(reply->body, body, reply->body_len);
	assert_int_equal(reply->route, EMULATOR_ROUTE_TOKEN);
	assert_int_equal(reply->refusal, EMULATOR_REFUSAL_NONE);
	assert_null(reply->allow);
	assert_false(reply->close);
}

static void a_token_is_answered_in_the_order_and_bytes_of_the_real_server(void **state)
{
	static const struct {
		const char *token;
		int64_t expires_in_s;
		const char *body;
	} rows[] = {
		{"ya29.a0Af_B-x~y+z/w=", 3599,
		 "{\"access_token\":\"ya29.a0Af_B-x~y+z/w=\",\"expires_in\":3599,"
		 "\"token_type\":\"Bearer\"}"},
		{"t", 1, "{\"access_token\":\"t\",\"expires_in\":1,\"token_type\":\"Bearer\"}"},
		{"t", 43200,
		 "{\"access_token\":\"t\",\"expires_in\":43200,\"token_type\":\"Bearer\"}"},
		/* Larger than 32 bits: Java would refuse it, but it must not turn around. */
		{"t", 4294967297,
		 "{\"access_token\":\"t\",\"expires_in\":4294967297,\"token_type\":\"Bearer\"}"},
		/* No token is like this (RFC 6750 section 2.1); the body stays JSON if one were. */
		{"a\"b\\c\n\x7f%s", 60,
		 "{\"access_token\":\"a\\u0022b\\u005cc\\u000a\\u007f%s\",\"expires_in\":60,"
		 "\"token_type\":\"Bearer\"}"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct secret *const token = secret_new(rows[i].token, strlen(rows[i].token));
		AUTO_BUF struct buf out;
		struct emulator_reply reply;
		buf_init_sensitive(&out, 4096);
		emulator_token_reply(token, rows[i].expires_in_s, &out, &reply);
		expect_token_json(&reply, 200, rows[i].body);
		secret_unref(token);
	}
}

static void a_refused_token_is_an_oauth_error_with_its_reference(void **state)
{
	static const struct {
		bool for_now;
		const char *description;
		unsigned status;
		const char *body;
	} rows[] = {
		{true, "credential temporarily unavailable", 503,
		 "{\"error\":\"temporarily_unavailable\",\"error_description\":"
		 "\"credential temporarily unavailable (ref 0a1b2c3d)\"}"},
		{false, "the broker may not use this account", 403,
		 "{\"error\":\"access_denied\",\"error_description\":"
		 "\"the broker may not use this account (ref 0a1b2c3d)\"}"},
		{false, "account not available", 403,
		 "{\"error\":\"access_denied\",\"error_description\":"
		 "\"account not available (ref 0a1b2c3d)\"}"},
		{false, "the host's login has expired", 403,
		 "{\"error\":\"access_denied\",\"error_description\":"
		 "\"the host's login has expired (ref 0a1b2c3d)\"}"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_BUF struct buf out;
		struct emulator_reply reply;
		buf_init(&out, 4096);
		emulator_token_refusal(rows[i].for_now, rows[i].description, "0a1b2c3d", &out,
				       &reply);
		expect_token_json(&reply, rows[i].status, rows[i].body);
	}
}

static const char *const suffixes[] = {"", "?recursive=true", "?alt=json",
				       "?recursive=true&alt=json", "?scopes=a&recursive=True"};

/* Calls `check` with the body of every reply that the profile's table gives. */
static void for_each_body(const struct profile *profile, void (*check)(const char *body))
{
	struct emulator *const emulator = emulator_new(profile->identity);
	struct spelling spellings[SPELLINGS_MAX];
	size_t tokens = 0;

	const size_t count = fixture_spellings(profile, spellings);
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < ARRAY_LEN(suffixes); k++) {
			char target[256];
			struct emulator_reply reply;
			const int len = snprintf(target, sizeof(target), "%s%s", spellings[i].path,
						 suffixes[k]);
			const struct emulator_request request =
				fixture_request("GET", target, (size_t)len);
			if (emulator_answer(emulator, &request, &reply))
				check(reply.body);
			else
				tokens++;
		}
	}
	/* By three names of the account, and by nothing else. */
	assert_int_equal(tokens, 3 * ARRAY_LEN(suffixes));
	emulator_free(emulator);
}

static void check_no_token(const char *body)
{
	static const char *const words[] = {"access_token", "expires_in", "Bearer", "ya29",
					    "\"token\"",    "identity",	  "(null)"};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strstr(body, words[i]))
			fail_msg("%s in %s", words[i], body);
}

static void no_route_but_token_ever_holds_a_token(void **state)
{
	(void)state;
	for_each_body(&profiles[PROFILE_NUMBERED], check_no_token);
	for_each_body(&profiles[PROFILE_PLAIN], check_no_token);
}

static void check_only_numbered(const char *body)
{
	static const char *const foreign[] = {"reader", "two@", "rival", "devstorage",
					      "cloud.example"};

	for (size_t i = 0; i < ARRAY_LEN(foreign); i++)
		if (strstr(body, foreign[i]))
			fail_msg("%s in %s", foreign[i], body);
}

static void check_only_plain(const char *body)
{
	static const char *const foreign[] = {"agent",		"my-project",
					      "123456789012",	"cloud-platform",
					      "userinfo.email", "googleapis.com\"",
					      "numeric",	"docker"};

	for (size_t i = 0; i < ARRAY_LEN(foreign); i++)
		if (strstr(body, foreign[i]))
			fail_msg("%s in %s", foreign[i], body);
}

static void nothing_of_another_identity_is_ever_answered(void **state)
{
	(void)state;
	for_each_body(&profiles[PROFILE_NUMBERED], check_only_numbered);
	for_each_body(&profiles[PROFILE_PLAIN], check_only_plain);
}

static void the_paths_of_another_account_do_not_exist(void **state)
{
	struct spelling spellings[SPELLINGS_MAX];

	(void)state;
	for (size_t p = 0; p < PROFILE_COUNT; p++) {
		struct emulator *const emulator = emulator_new(profiles[1 - p].identity);
		const size_t count = fixture_spellings(&profiles[p], spellings);
		size_t refused = 0;
		for (size_t i = 0; i < count; i++) {
			const char *const path = spellings[i].path;
			const struct emulator_request request =
				fixture_request("GET", path, strlen(path));
			struct emulator_reply reply;
			if (!strstr(path, "@") && !strstr(path, "%40"))
				continue;
			assert_true(emulator_answer(emulator, &request, &reply));
			expect_refusal(&reply, EMULATOR_REFUSAL_PATH, path);
			refused++;
		}
		assert_int_equal(refused, 12);
		emulator_free(emulator);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_token_is_answered_in_the_order_and_bytes_of_the_real_server),
		cmocka_unit_test(a_refused_token_is_an_oauth_error_with_its_reference),
		cmocka_unit_test(no_route_but_token_ever_holds_a_token),
		cmocka_unit_test(nothing_of_another_identity_is_ever_answered),
		cmocka_unit_test(the_paths_of_another_account_do_not_exist),
	};

	return cmocka_run_group_tests_name("emulator token", tests, NULL, NULL);
}
