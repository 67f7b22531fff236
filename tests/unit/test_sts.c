/* SPDX-License-Identifier: Apache-2.0 */
/* The token exchange: RFC 8693 as Google's page and client libraries narrow it. */
#include "broker/google/sts.h"

#include "tests/unit/fake_clock.h"
#include "tests/unit/fake_http.h"

#include <stdio.h>

#define AUDIENCE                                                                    \
	"//iam.googleapis.com/projects/123/locations/global/workloadIdentityPools/" \
	"pool/providers/prov"

static struct secret *subject;
static struct secret *client_secret;
static struct sts_exchange exchange;

static struct {
	size_t calls;
	char token[64];
	int64_t life_s;
	bool failed;
	struct failure failure;
} got;

static int set_up(void **state)
{
	(void)state;
	fake_http_reset();
	memset(&got, 0, sizeof(got));
	subject = secret_new("eyJ.sub/ject+.x=", 16);
	client_secret = secret_new("pa:ss", 5);
	exchange = (struct sts_exchange){
		.endpoint = "https://sts.googleapis.com",
		.audience = AUDIENCE,
		.scope = "https://www.googleapis.com/auth/cloud-platform",
		.subject_token_type = "urn:ietf:params:oauth:token-type:jwt",
		.subject_token = subject,
	};
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	secret_unref(subject);
	secret_unref(client_secret);
	return 0;
}

static void done(void *ctx, const struct sts_token *token, const struct failure *failure)
{
	assert_ptr_equal(ctx, &got);
	assert_true(!token != !failure);
	got.calls++;
	got.failed = failure != NULL;
	if (failure)
		got.failure = *failure;
	if (!token)
		return;
	(void)snprintf(got.token, sizeof(got.token), "%s", secret_bytes(token->access_token));
	got.life_s = token->life_s;
}

static struct sts_call *start(void)
{
	return sts_exchange_start(NULL, &exchange, done, &got);
}

static void answer(long status, const char *body)
{
	memset(&got, 0, sizeof(got));
	assert_non_null(start());
	fake_http_answer(status, body, FAKE_WALL_S);
	assert_int_equal(got.calls, 1);
}

static void the_request_is_the_exchange_to_the_byte(void **state)
{
	(void)state;
	struct sts_call *const call = start();
	const struct http_call *const http = fake_http_request();
	assert_string_equal(http->method, "POST");
	assert_string_equal(http->url, "https://sts.googleapis.com/v1/token");
	assert_string_equal(http->content_type, "application/x-www-form-urlencoded");
	assert_null(http->bearer);
	assert_null(http->basic);
	assert_string_equal(
		http->body,
		"grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange"
		"&audience=%2F%2Fiam.googleapis.com%2Fprojects%2F123%2Flocations%2Fglobal%2F"
		"workloadIdentityPools%2Fpool%2Fproviders%2Fprov"
		"&scope=https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fcloud-platform"
		"&requested_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token"
		"&subject_token=eyJ.sub%2Fject%2B.x%3D"
		"&subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Ajwt");
	sts_call_cancel(call);
	assert_int_equal(got.calls, 0);
}

static void a_workforce_project_is_escaped_twice(void **state)
{
	(void)state;
	exchange.user_project = "my-project";
	struct sts_call *const call = start();
	/* {"userProject":"my-project"} */
	assert_non_null(
		strstr(fake_http_request()->body,
		       "&options=%257B%2522userProject%2522%253A%2522my-project%2522%257D"));
	sts_call_cancel(call);
}

static void a_client_goes_into_the_authorization_header_only(void **state)
{
	(void)state;
	exchange.client_id = "client";
	exchange.client_secret = client_secret;
	struct sts_call *const call = start();
	assert_string_equal(fake_http_request()->basic, "client:pa:ss");
	assert_null(strstr(fake_http_request()->body, "client"));
	sts_call_cancel(call);
}

static void an_expiry_is_read_as_a_number_or_as_a_string(void **state)
{
	static const struct {
		const char *expires_in;
		int64_t life_s;
	} cases[] = {
		{"3599", 3599},
		{"\"3599\"", 3599},
		{"1", 1},
		{"99999999", 86400},
	};
	char body[160];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		(void)snprintf(body, sizeof(body),
			       "{\"access_token\":\"federated\",\"issued_token_type\":\"x\","
			       "\"token_type\":\"Bearer\",\"expires_in\":%s}",
			       cases[i].expires_in);
		answer(200, body);
		assert_string_equal(got.token, "federated");
		assert_int_equal(got.life_s, cases[i].life_s);
	}
}

static void an_answer_that_is_no_token_is_a_failure(void **state)
{
	static const char *const bodies[] = {
		"",
		"[]",
		"{}",
		"<html>",
		"{\"access_token\":\"t\"}",
		"{\"access_token\":\"t\",\"expires_in\":0}",
		"{\"access_token\":\"t\",\"expires_in\":-5}",
		"{\"access_token\":\"t\",\"expires_in\":\"-5\"}",
		"{\"access_token\":\"t\",\"expires_in\":3599.5}",
		"{\"access_token\":\"t\",\"expires_in\":null}",
		"{\"access_token\":\"t\",\"expires_in\":60,\"token_type\":\"mac\"}",
		"{\"access_token\":\"t\",\"expires_in\":60,\"token_type\":7}",
		"{\"access_token\":\"\",\"expires_in\":60}",
		"{\"access_token\":\"a b\",\"expires_in\":60}",
		"{\"access_token\":\"t\\n\",\"expires_in\":60}",
		"{\"access_token\":\"t\",\"access_token\":\"u\",\"expires_in\":60}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
		answer(200, bodies[i]);
		if (!got.failed)
			fail_msg("accepted: %s", bodies[i]);
		assert_int_equal(got.failure.step, FAILURE_STEP_EXCHANGE);
		assert_int_equal(got.failure.class, FAILURE_TRANSIENT);
		assert_string_equal(got.failure.reason, "bad_answer");
		assert_int_equal(got.failure.http_status, 200);
	}
}

/* The error table of the facts page, from public threads: googleapis/google-cloud-go#12440, and so on. */
static void an_error_is_classed_by_its_oauth2_word(void **state)
{
	static const struct {
		long status;
		const char *body;
		enum failure_class class;
		const char *reason;
		const char *repair;
	} cases[] = {
		{400,
		 "{\"error\":\"invalid_grant\",\"error_description\":\"ID Token issued at 1 is "
		 "stale to sign-in.\"}",
		 FAILURE_PERMANENT, "invalid_grant", "older than an hour"},
		{400, "{\"error\":\"invalid_target\"}", FAILURE_PERMANENT, "invalid_target",
		 "audience"},
		{400, "{\"error\":\"unauthorized_client\"}", FAILURE_PERMANENT,
		 "unauthorized_client", "attribute condition"},
		{401, "{\"error\":\"invalid_client\"}", FAILURE_PERMANENT, "invalid_client",
		 "client_secret"},
		{400, "{\"error\":\"invalid_request\"}", FAILURE_PERMANENT, "invalid_request",
		 "subject_token_type"},
		{403, "{\"error\":{\"code\":403}}", FAILURE_PERMANENT, "unknown",
		 "roles/serviceusage.serviceUsageConsumer"},
		{404, "", FAILURE_PERMANENT, "unknown", "sts under [endpoints]"},
		{408, "", FAILURE_TRANSIENT, "unknown", "tried again"},
		{429, "", FAILURE_TRANSIENT, "unknown", "quota"},
		{500, "", FAILURE_TRANSIENT, "unknown", "tried again"},
		{503, "<html>", FAILURE_TRANSIENT, "unknown", "tried again"},
		{302, "", FAILURE_TRANSIENT, "unknown", "redirect"},
		{400, "{\"error\":\"temporarily_unavailable\"}", FAILURE_TRANSIENT,
		 "temporarily_unavailable", "tried again"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		answer(cases[i].status, cases[i].body);
		assert_true(got.failed);
		assert_int_equal(got.failure.step, FAILURE_STEP_EXCHANGE);
		assert_string_equal(got.failure.reason, cases[i].reason);
		if (got.failure.class != cases[i].class ||
		    !strstr(got.failure.detail, cases[i].repair))
			fail_msg("%ld %s: %s", cases[i].status, cases[i].body, got.failure.detail);
		assert_true(strlen(got.failure.detail) < sizeof(got.failure.detail) - 1);
	}
}

static void no_answer_is_a_transient_failure_of_this_step(void **state)
{
	(void)state;
	assert_non_null(start());
	fake_http_fail(HTTP_FAILURE_BROKEN);
	assert_true(got.failed);
	assert_int_equal(got.failure.class, FAILURE_TRANSIENT);
	assert_string_equal(got.failure.reason, "broken");
	assert_string_equal(failure_step_name(got.failure.step), "sts");
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(the_request_is_the_exchange_to_the_byte),
		CASE(a_workforce_project_is_escaped_twice),
		CASE(a_client_goes_into_the_authorization_header_only),
		CASE(an_expiry_is_read_as_a_number_or_as_a_string),
		CASE(an_answer_that_is_no_token_is_a_failure),
		CASE(an_error_is_classed_by_its_oauth2_word),
		CASE(no_answer_is_a_transient_failure_of_this_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
