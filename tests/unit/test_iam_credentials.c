/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/google/iam_credentials.h"

#include "broker/base/strv.h"
#include "broker/google/access_token.h"
#include "tests/unit/fake_clock.h"
#include "tests/unit/fake_http.h"

#include <stdio.h>

#define AGENT "agent@my-project.iam.gserviceaccount.com"
#define OK_BODY "{\"accessToken\":\"ya29.c.token\",\"expireTime\":\"2026-11-29T11:00:00Z\"}"

static struct fake_clock fake;
static struct secret *source_token;
static struct strv no_delegates;
static struct strv scopes;

static struct {
	size_t calls;
	char token[ACCESS_TOKEN_MAX_BYTES + 1];
	struct iam_token result;
	struct failure failure;
	bool failed;
} got;

static int set_up(void **state)
{
	(void)state;
	fake_clock_init(&fake);
	fake_http_reset();
	memset(&got, 0, sizeof(got));
	source_token = secret_new("ya29.source", strlen("ya29.source"));
	strv_add(&scopes, "https://www.googleapis.com/auth/cloud-platform",
		 strlen("https://www.googleapis.com/auth/cloud-platform"));
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	secret_unref(source_token);
	strv_deinit(&scopes);
	return 0;
}

static void done(void *ctx, const struct iam_token *token, const struct failure *failure)
{
	assert_ptr_equal(ctx, &got);
	assert_true(!token != !failure);
	got.calls++;
	got.failed = failure != NULL;
	if (failure)
		got.failure = *failure;
	if (!token)
		return;
	got.result = *token;
	(void)snprintf(got.token, sizeof(got.token), "%s", secret_bytes(token->token));
}

static struct iam_token_request a_request(void)
{
	return (struct iam_token_request){
		.endpoint = "https://iamcredentials.googleapis.com",
		.service_account = AGENT,
		.scopes = &scopes,
		.delegates = &no_delegates,
		.lifetime_s = 3600,
		.source_token = source_token,
	};
}

static struct iam_call *start(const struct iam_token_request *request)
{
	return iam_generate_access_token(NULL, &fake.clock, request, done, &got);
}

static void mint(const char *body, int64_t date_s)
{
	const struct iam_token_request request = a_request();

	assert_non_null(start(&request));
	fake_http_answer(200, body, date_s);
}

static void the_request_is_the_documented_one_to_the_byte(void **state)
{
	const struct iam_token_request request = a_request();

	(void)state;
	struct iam_call *const call = start(&request);
	const struct http_call *const http = fake_http_request();
	assert_string_equal(http->method, "POST");
	assert_string_equal(http->url,
			    "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/"
			    "agent@my-project.iam.gserviceaccount.com:generateAccessToken");
	assert_string_equal(http->content_type, "application/json");
	assert_string_equal(http->bearer, "ya29.source");
	assert_null(http->quota_project);
	assert_string_equal(http->body,
			    "{\"scope\":[\"https://www.googleapis.com/auth/cloud-platform\"],"
			    "\"lifetime\":\"3600s\"}");
	iam_call_cancel(call);
}

static void delegates_scopes_lifetime_and_quota_project_are_sent_as_they_are(void **state)
{
	struct iam_token_request request = a_request();
	AUTO_STRV struct strv delegates = {0};

	(void)state;
	strv_add(&scopes, "https://www.googleapis.com/auth/\"x\"",
		 strlen("https://www.googleapis.com/auth/\"x\""));
	assert_int_equal(strv_split(&delegates, "b@p.iam.gserviceaccount.com, a@p.example"), 0);
	request.delegates = &delegates;
	request.lifetime_s = 43200;
	request.quota_project = "billing";
	struct iam_call *const call = start(&request);
	const struct http_call *const http = fake_http_request();
	assert_string_equal(http->quota_project, "billing");
	assert_string_equal(http->body,
			    "{\"scope\":[\"https://www.googleapis.com/auth/cloud-platform\","
			    "\"https://www.googleapis.com/auth/\\\"x\\\"\"],"
			    "\"delegates\":["
			    "\"projects/-/serviceAccounts/b@p.iam.gserviceaccount.com\","
			    "\"projects/-/serviceAccounts/a@p.example\"],"
			    "\"lifetime\":\"43200s\"}");
	iam_call_cancel(call);
}

static void no_url_is_built_from_what_is_no_email_address(void **state)
{
	static const char *const bad[] = {
		"",
		"agent",
		"a/b@p.example",
		"a@p.example/x",
		"a@p.example?x=y",
		"a@p.example#x",
		"a@p.example:x",
		"a@p.example\n",
		"a@p.example%2f",
		"a b@p.example",
		"a@p.example/../other",
		"a@@p.example",
		"a@p.example ",
		"\xc3\xa4@p.example",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		AUTO_STRV struct strv delegates = {0};
		struct iam_token_request request = a_request();
		request.service_account = bad[i];
		assert_null(start(&request));
		request = a_request();
		strv_add(&delegates, bad[i], strlen(bad[i]));
		request.delegates = &delegates;
		assert_null(start(&request));
	}
	assert_int_equal(fake_http.started, 0);
}

static void a_scope_that_is_not_utf8_is_not_left_out_but_refused(void **state)
{
	const struct iam_token_request request = a_request();

	(void)state;
	strv_add(&scopes, "\xff", 1);
	assert_null(start(&request));
	assert_int_equal(fake_http.started, 0);
}

static void an_answer_gives_the_token_and_its_life(void **state)
{
	(void)state;
	mint(OK_BODY, FAKE_WALL_S);
	assert_int_equal(got.calls, 1);
	assert_string_equal(got.token, "ya29.c.token");
	assert_int_equal(got.result.life_ms, 3600 * 1000);
	assert_int_equal(got.result.skew_s, 0);
}

static void unknown_fields_of_an_answer_are_ignored(void **state)
{
	(void)state;
	mint("{\"new\":{\"accessToken\":1},\"accessToken\":\"t\","
	     "\"expireTime\":\"2026-11-29T10:10:00Z\"}",
	     FAKE_WALL_S);
	assert_string_equal(got.token, "t");
	assert_int_equal(got.result.life_ms, 600 * 1000);
}

static void the_life_counts_from_the_date_of_the_answer(void **state)
{
	(void)state;
	/* Our clock is 100 s behind: by it, the token would live 3,700 s. */
	fake.wall_ms -= 100 * 1000;
	mint("{\"accessToken\":\"t\",\"expireTime\":\"2026-11-29T10:50:00.5+00:00\"}", FAKE_WALL_S);
	assert_int_equal(got.result.life_ms, 3000 * 1000 + 500);
	assert_int_equal(got.result.skew_s, -100);
}

static void without_a_date_the_life_counts_from_our_wall_clock(void **state)
{
	(void)state;
	fake.wall_ms += 100 * 1000 + 250;
	mint(OK_BODY, -1);
	assert_int_equal(got.result.life_ms, 3500 * 1000 - 250);
	assert_int_equal(got.result.skew_s, 0);
}

static void the_life_is_never_more_than_the_lifetime_asked(void **state)
{
	struct iam_token_request request = a_request();

	(void)state;
	request.lifetime_s = 900;
	assert_non_null(start(&request));
	fake_http_answer(200, OK_BODY, FAKE_WALL_S);
	assert_int_equal(got.result.life_ms, 900 * 1000);
	mint("{\"accessToken\":\"t\",\"expireTime\":\"9999-12-31T23:59:59Z\"}", FAKE_WALL_S);
	assert_int_equal(got.result.life_ms, 3600 * 1000);
}

static void the_largest_token_that_is_taken_is_taken(void **state)
{
	char token[ACCESS_TOKEN_MAX_BYTES + 2];
	char body[sizeof(token) + 100];

	(void)state;
	memset(token, 'a', sizeof(token));
	token[ACCESS_TOKEN_MAX_BYTES] = '\0';
	(void)snprintf(body, sizeof(body),
		       "{\"accessToken\":\"%s\",\"expireTime\":\"2026-11-29T11:00:00Z\"}", token);
	mint(body, FAKE_WALL_S);
	assert_false(got.failed);
	assert_string_equal(got.token, token);

	token[ACCESS_TOKEN_MAX_BYTES] = 'a';
	token[ACCESS_TOKEN_MAX_BYTES + 1] = '\0';
	(void)snprintf(body, sizeof(body),
		       "{\"accessToken\":\"%s\",\"expireTime\":\"2026-11-29T11:00:00Z\"}", token);
	mint(body, FAKE_WALL_S);
	assert_true(got.failed);
	assert_string_equal(got.failure.reason, "bad_answer");
}

static void check_bad_answer(const char *body)
{
	memset(&got, 0, sizeof(got));
	mint(body, FAKE_WALL_S);
	if (!got.failed)
		fail_msg("a token was taken from %s", body);
	assert_int_equal(got.calls, 1);
	assert_int_equal(got.failure.class, FAILURE_TRANSIENT);
	assert_int_equal(got.failure.public, FAILURE_TEMPORARY);
	assert_int_equal(got.failure.step, FAILURE_STEP_MINT);
	assert_int_equal(got.failure.http_status, 200);
	assert_string_equal(got.failure.reason, "bad_answer");
	assert_null(strstr(got.failure.detail, "SECRET"));
}

#define WITH_TOKEN(token) "{\"accessToken\":" token ",\"expireTime\":\"2026-11-29T11:00:00Z\"}"
#define WITH_EXPIRY(time) "{\"accessToken\":\"SECRET\",\"expireTime\":" time "}"

static void an_answer_without_a_usable_token_is_a_failed_mint(void **state)
{
	static const char *const bodies[] = {
		"",
		"<html>SECRET</html>",
		"[]",
		"null",
		"\"SECRET\"",
		"{}",
		"{\"accessToken\":\"SECRET\",\"expireTime\":\"2026-11-29T11:00:00Z\"",
		"{\"accessToken\":\"SECRET\",\"expireTime\":\"2026-11-29T11:00:00Z\"}x",
		"{\"accessToken\":\"SECRET\",\"accessToken\":\"SECRET\","
		"\"expireTime\":\"2026-11-29T11:00:00Z\"}",
		"{\"expireTime\":\"2026-11-29T11:00:00Z\"}",
		"{\"access_token\":\"SECRET\",\"expireTime\":\"2026-11-29T11:00:00Z\"}",
		WITH_TOKEN("\"\""),
		WITH_TOKEN("null"),
		WITH_TOKEN("7"),
		WITH_TOKEN("[\"SECRET\"]"),
		WITH_TOKEN("\"SEC RET\""),
		WITH_TOKEN("\" SECRET\""),
		WITH_TOKEN("\"SECRET\\r\\nX-Other: 1\""),
		WITH_TOKEN("\"SECRET\\u0000\""),
		WITH_TOKEN("\"SECRET\\u007f\""),
		WITH_TOKEN("\"SECRET\\\"\""),
		WITH_TOKEN("\"SECRET\\\\\""),
		WITH_TOKEN("\"SECRET\xc3\xa4\""),
		WITH_TOKEN("\"SECRET\xff\""),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bodies); i++)
		check_bad_answer(bodies[i]);
}

/* masumi-network/Citadel#203: what cannot be read was no end at all. */
static void an_expire_time_that_cannot_be_read_is_a_failed_mint(void **state)
{
	static const char *const bodies[] = {
		"{\"accessToken\":\"SECRET\"}",
		WITH_EXPIRY("null"),
		WITH_EXPIRY("\"\""),
		WITH_EXPIRY("1795950000"),
		WITH_EXPIRY("\"1795950000\""),
		WITH_EXPIRY("{\"seconds\":1795950000}"),
		WITH_EXPIRY("\"2026-11-29T11:00:00\""),
		WITH_EXPIRY("\"2026-11-29 11:00:00Z\""),
		WITH_EXPIRY("\"2026-11-29T11:00:00.0000000000Z\""),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bodies); i++)
		check_bad_answer(bodies[i]);
}

static void a_past_expire_time_is_a_failed_mint(void **state)
{
	(void)state;
	check_bad_answer(WITH_EXPIRY("\"2026-11-29T10:00:00Z\""));
	check_bad_answer(WITH_EXPIRY("\"2026-11-29T09:59:59.999999999Z\""));
	check_bad_answer(WITH_EXPIRY("\"2026-11-29T11:00:00+01:00\""));
	check_bad_answer(WITH_EXPIRY("\"0000-01-01T00:00:00Z\""));
	check_bad_answer(WITH_EXPIRY("\"1970-01-01T00:00:00Z\""));
	/* By our clock, where the answer has no Date. */
	fake.wall_ms += 7200 * 1000;
	mint(WITH_EXPIRY("\"2026-11-29T11:00:00Z\""), -1);
	assert_true(got.failed);
	assert_non_null(strstr(got.failure.detail, "clock"));
}

static void only_a_200_is_a_success(void **state)
{
	static const long statuses[] = {201, 202, 204, 206, 302, 400, 500};
	const struct iam_token_request request = a_request();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
		memset(&got, 0, sizeof(got));
		assert_non_null(start(&request));
		fake_http_answer(statuses[i], OK_BODY, FAKE_WALL_S);
		assert_true(got.failed);
		assert_int_equal(got.failure.http_status, statuses[i]);
	}
}

static void an_error_is_classed_by_its_error_info(void **state)
{
	const struct iam_token_request request = a_request();

	(void)state;
	assert_non_null(start(&request));
	fake_http_answer(403,
			 "{\"error\":{\"code\":403,\"status\":\"PERMISSION_DENIED\",\"details\":[{"
			 "\"@type\":\"type.googleapis.com/google.rpc.ErrorInfo\","
			 "\"reason\":\"IAM_PERMISSION_DENIED\",\"domain\":\"iam.googleapis.com\","
			 "\"metadata\":{\"permission\":\"iam.serviceAccounts.getAccessToken\"}}]}}",
			 FAKE_WALL_S);
	assert_int_equal(got.calls, 1);
	assert_int_equal(got.failure.class, FAILURE_PERMANENT);
	assert_int_equal(got.failure.step, FAILURE_STEP_MINT);
	assert_string_equal(got.failure.reason, "IAM_PERMISSION_DENIED");
	assert_string_equal(got.failure.permission, "iam.serviceAccounts.getAccessToken");
}

static void a_connection_that_fails_is_a_transient_failure(void **state)
{
	const struct iam_token_request request = a_request();

	(void)state;
	assert_non_null(start(&request));
	fake_http_fail(HTTP_FAILURE_TIMEOUT);
	assert_int_equal(got.calls, 1);
	assert_int_equal(got.failure.class, FAILURE_TRANSIENT);
	assert_string_equal(got.failure.reason, "timeout");
}

static void a_cancelled_call_has_no_callback(void **state)
{
	const struct iam_token_request request = a_request();

	(void)state;
	iam_call_cancel(start(&request));
	iam_call_cancel(NULL);
	assert_int_equal(fake_http.cancelled, 1);
	assert_int_equal(got.calls, 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		CASE(the_request_is_the_documented_one_to_the_byte),
		CASE(delegates_scopes_lifetime_and_quota_project_are_sent_as_they_are),
		CASE(no_url_is_built_from_what_is_no_email_address),
		CASE(a_scope_that_is_not_utf8_is_not_left_out_but_refused),
		CASE(an_answer_gives_the_token_and_its_life),
		CASE(unknown_fields_of_an_answer_are_ignored),
		CASE(the_life_counts_from_the_date_of_the_answer),
		CASE(without_a_date_the_life_counts_from_our_wall_clock),
		CASE(the_life_is_never_more_than_the_lifetime_asked),
		CASE(the_largest_token_that_is_taken_is_taken),
		CASE(an_answer_without_a_usable_token_is_a_failed_mint),
		CASE(an_expire_time_that_cannot_be_read_is_a_failed_mint),
		CASE(a_past_expire_time_is_a_failed_mint),
		CASE(only_a_200_is_a_success),
		CASE(an_error_is_classed_by_its_error_info),
		CASE(a_connection_that_fails_is_a_transient_failure),
		CASE(a_cancelled_call_has_no_callback),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
