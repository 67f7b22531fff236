/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/google/oauth2.h"

#include "tests/unit/fake_clock.h"
#include "tests/unit/fake_http.h"

#include <stdio.h>

static struct fake_clock fake;
static struct secret *client_secret;
static struct secret *refresh_token;

static struct {
	size_t calls;
	char access[64];
	char rotated[64];
	int64_t life_s;
	int64_t skew_s;
	struct failure failure;
	bool failed;
} got;

static int set_up(void **state)
{
	(void)state;
	fake_clock_init(&fake);
	fake_http_reset();
	memset(&got, 0, sizeof(got));
	client_secret = secret_new("d-SECRET_1", strlen("d-SECRET_1"));
	refresh_token = secret_new("1//0refresh", strlen("1//0refresh"));
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	secret_unref(client_secret);
	secret_unref(refresh_token);
	return 0;
}

static void done(void *ctx, const struct oauth2_token *token, const struct failure *failure)
{
	assert_ptr_equal(ctx, &got);
	assert_true(!token != !failure);
	got.calls++;
	got.failed = failure != NULL;
	if (failure)
		got.failure = *failure;
	if (!token)
		return;
	(void)snprintf(got.access, sizeof(got.access), "%s", secret_bytes(token->access_token));
	(void)snprintf(got.rotated, sizeof(got.rotated), "%s",
		       token->refresh_token ? secret_bytes(token->refresh_token) : "");
	got.life_s = token->life_s;
	got.skew_s = token->skew_s;
}

static struct oauth2_call *start(void)
{
	const struct oauth2_refresh refresh = {
		.endpoint = "https://oauth2.googleapis.com",
		.client_id = "764086051850-x.apps.googleusercontent.com",
		.client_secret = client_secret,
		.refresh_token = refresh_token,
	};

	return oauth2_refresh_start(NULL, &fake.clock, &refresh, done, &got);
}

static void refresh_with(const char *body)
{
	memset(&got, 0, sizeof(got));
	assert_non_null(start());
	fake_http_answer(200, body, FAKE_WALL_S);
	assert_int_equal(got.calls, 1);
}

static void the_request_is_the_refresh_grant_to_the_byte(void **state)
{
	(void)state;
	struct oauth2_call *const call = start();
	const struct http_call *const http = fake_http_request();
	assert_string_equal(http->method, "POST");
	assert_string_equal(http->url, "https://oauth2.googleapis.com/token");
	assert_string_equal(http->content_type, "application/x-www-form-urlencoded");
	assert_null(http->bearer);
	assert_null(http->quota_project);
	assert_string_equal(http->body, "grant_type=refresh_token"
					"&client_id=764086051850-x.apps.googleusercontent.com"
					"&client_secret=d-SECRET_1"
					"&refresh_token=1%2F%2F0refresh");
	oauth2_call_cancel(call);
}

/* RFC 3986 section 2.3 names what needs no escape. */
static void every_byte_that_a_form_could_misread_is_escaped(void **state)
{
	char secret[256];
	size_t n = 0;

	(void)state;
	for (int c = 1; c < 256; c++)
		secret[n++] = (char)c;
	secret_unref(client_secret);
	client_secret = secret_new(secret, n);
	struct oauth2_call *const call = start();
	const char *at = strstr(fake_http_request()->body, "&client_secret=");
	assert_non_null(at);
	at += strlen("&client_secret=");
	for (int c = 1; c < 256; c++) {
		char expected[4] = {(char)c, '\0'};
		const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
				   (c >= 'a' && c <= 'z') || c == '-' || c == '.' || c == '_' ||
				   c == '~';
		if (!plain)
			(void)snprintf(expected, sizeof(expected), "%%%02X", (unsigned)c);
		assert_memory_equal(at, expected, strlen(expected));
		at += strlen(expected);
	}
	assert_string_equal(at, "&refresh_token=1%2F%2F0refresh");
	oauth2_call_cancel(call);
}

static void an_answer_gives_the_token_and_its_life(void **state)
{
	(void)state;
	fake.wall_ms += 90 * 1000;
	refresh_with("{\"access_token\":\"ya29.a0\",\"expires_in\":3599,"
		     "\"scope\":\"https://www.googleapis.com/auth/cloud-platform openid\","
		     "\"token_type\":\"Bearer\",\"id_token\":\"a.b.c\"}");
	assert_string_equal(got.access, "ya29.a0");
	assert_string_equal(got.rotated, "");
	assert_int_equal(got.life_s, 3599);
	assert_int_equal(got.skew_s, 90);
}

static void without_a_date_there_is_no_skew(void **state)
{
	(void)state;
	fake.wall_ms += 90 * 1000;
	assert_non_null(start());
	fake_http_answer(200, "{\"access_token\":\"t\",\"expires_in\":1}", -1);
	assert_int_equal(got.skew_s, 0);
}

static void a_life_that_is_no_number_of_seconds_is_none(void **state)
{
	static const struct {
		const char *value;
		int64_t life_s;
	} cases[] = {
		{"3599", 3599},
		{"\"3599\"", 3599},
		{"0", 0},
		{"-1", 0},
		{"\"-1\"", 0},
		{"\"\"", 0},
		{"\"1h\"", 0},
		{"3599.5", 0},
		{"null", 0},
		{"[]", 0},
		{"true", 0},
		{"86401", 86400},
		{"\"99999999999999999999\"", 0},
		{"9223372036854775807", 86400},
		{"\"18446744073709551615\"", 86400},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char body[128];
		(void)snprintf(body, sizeof(body), "{\"access_token\":\"t\",\"expires_in\":%s}",
			       cases[i].value);
		refresh_with(body);
		assert_false(got.failed);
		assert_int_equal(got.life_s, cases[i].life_s);
	}
	refresh_with("{\"access_token\":\"t\"}");
	assert_false(got.failed);
	assert_int_equal(got.life_s, 0);
}

static void a_rotated_refresh_token_is_reported_only_when_it_is_another(void **state)
{
	(void)state;
	refresh_with("{\"access_token\":\"t\",\"expires_in\":1,\"refresh_token\":\"1//0next\"}");
	assert_string_equal(got.rotated, "1//0next");
	refresh_with("{\"access_token\":\"t\",\"expires_in\":1,\"refresh_token\":\"1//0refresh\"}");
	assert_string_equal(got.rotated, "");
	refresh_with("{\"access_token\":\"t\",\"expires_in\":1,\"refresh_token\":\"\"}");
	assert_string_equal(got.rotated, "");
	refresh_with("{\"access_token\":\"t\",\"expires_in\":1,\"refresh_token\":7}");
	assert_string_equal(got.rotated, "");
}

static void an_answer_without_a_usable_token_is_a_transient_failure(void **state)
{
	static const char *const bodies[] = {
		"",
		"<html>SECRET</html>",
		"{}",
		"[\"SECRET\"]",
		"{\"access_token\":\"SECRET\"",
		"{\"access_token\":\"SECRET\",\"access_token\":\"SECRET\"}",
		"{\"access_token\":\"\"}",
		"{\"access_token\":7}",
		"{\"access_token\":\"SEC RET\"}",
		"{\"access_token\":\"SECRET\\n\"}",
		"{\"access_token\":\"SECRET\",\"token_type\":\"MAC\"}",
		"{\"access_token\":\"SECRET\",\"token_type\":7}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
		refresh_with(bodies[i]);
		if (!got.failed)
			fail_msg("a token was taken from %s", bodies[i]);
		assert_int_equal(got.failure.class, FAILURE_TRANSIENT);
		assert_int_equal(got.failure.step, FAILURE_STEP_SOURCE);
		assert_int_equal(got.failure.http_status, 200);
		assert_string_equal(got.failure.reason, "bad_answer");
		assert_null(strstr(got.failure.detail, "SECRET"));
	}
}

static void a_login_that_has_run_out_names_the_command_that_mends_it(void **state)
{
	(void)state;
	assert_non_null(start());
	fake_http_answer(400,
			 "{\"error\":\"invalid_grant\",\"error_subtype\":\"invalid_rapt\","
			 "\"error_description\":\"reauth related error (invalid_rapt)\"}",
			 FAKE_WALL_S);
	assert_int_equal(got.failure.class, FAILURE_PERMANENT);
	assert_int_equal(got.failure.public, FAILURE_LOGIN_EXPIRED);
	assert_string_equal(got.failure.reason, "invalid_rapt");
	assert_non_null(strstr(got.failure.detail, "gcloud auth application-default login"));
	assert_null(strstr(got.failure.detail, "reauth related"));
}

static void a_connection_that_fails_is_a_transient_failure(void **state)
{
	(void)state;
	assert_non_null(start());
	fake_http_fail(HTTP_FAILURE_RESOLVE);
	assert_int_equal(got.failure.class, FAILURE_TRANSIENT);
	assert_int_equal(got.failure.step, FAILURE_STEP_SOURCE);
	assert_string_equal(got.failure.reason, "resolve");
}

static void a_cancelled_call_has_no_callback(void **state)
{
	(void)state;
	oauth2_call_cancel(start());
	oauth2_call_cancel(NULL);
	assert_int_equal(fake_http.cancelled, 1);
	assert_int_equal(got.calls, 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		CASE(the_request_is_the_refresh_grant_to_the_byte),
		CASE(every_byte_that_a_form_could_misread_is_escaped),
		CASE(an_answer_gives_the_token_and_its_life),
		CASE(without_a_date_there_is_no_skew),
		CASE(a_life_that_is_no_number_of_seconds_is_none),
		CASE(a_rotated_refresh_token_is_reported_only_when_it_is_another),
		CASE(an_answer_without_a_usable_token_is_a_transient_failure),
		CASE(a_login_that_has_run_out_names_the_command_that_mends_it),
		CASE(a_connection_that_fails_is_a_transient_failure),
		CASE(a_cancelled_call_has_no_callback),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
