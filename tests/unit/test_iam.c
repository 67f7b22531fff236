/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/google/iam.h"

#include "tests/unit/fake_http.h"

#define AGENT "agent@my-project.iam.gserviceaccount.com"
#define PERMISSION "iam.serviceAccounts.getAccessToken"

static struct secret *source_token;

static struct {
	size_t calls;
	enum iam_grant grant;
	bool explained;
	struct failure failure;
} got;

static int set_up(void **state)
{
	(void)state;
	fake_http_reset();
	memset(&got, 0, sizeof(got));
	source_token = secret_new("ya29.source", strlen("ya29.source"));
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	secret_unref(source_token);
	return 0;
}

static void done(void *ctx, enum iam_grant grant, const struct failure *failure)
{
	assert_ptr_equal(ctx, &got);
	got.calls++;
	got.grant = grant;
	got.explained = failure != NULL;
	if (failure)
		got.failure = *failure;
}

static struct iam_grant_call *start(const char *account, const char *quota_project)
{
	const struct iam_grant_request request = {
		.endpoint = "https://iam.googleapis.com",
		.account = account,
		.quota_project = quota_project,
		.source_token = source_token,
	};

	return iam_test_grant(NULL, &request, done, &got);
}

static void ask(void)
{
	assert_non_null(start(AGENT, NULL));
}

/* cloud.google.com/iam/docs/reference/rest/v1/projects.serviceAccounts/testIamPermissions */
static void the_request_is_the_documented_one_to_the_byte(void **state)
{
	(void)state;
	struct iam_grant_call *const call = start(AGENT, NULL);
	const struct http_call *const http = fake_http_request();
	assert_string_equal(http->method, "POST");
	assert_string_equal(http->url,
			    "https://iam.googleapis.com/v1/projects/-/serviceAccounts/" AGENT
			    ":testIamPermissions");
	assert_string_equal(http->content_type, "application/json");
	assert_string_equal(http->bearer, "ya29.source");
	assert_string_equal(http->body, "{\"permissions\":[\"" PERMISSION "\"]}");
	assert_null(http->quota_project);
	iam_grant_call_cancel(call);
	assert_int_equal(fake_http.cancelled, 1);
	assert_int_equal(got.calls, 0);
}

static void a_quota_project_goes_with_it(void **state)
{
	(void)state;
	struct iam_grant_call *const call = start(AGENT, "billing");
	assert_string_equal(fake_http_request()->quota_project, "billing");
	iam_grant_call_cancel(call);
	iam_grant_call_cancel(NULL);
}

static void what_is_no_address_is_not_asked_for(void **state)
{
	static const char *const accounts[] = {"", "agent", "agent@p/../x", "a@b c", "a@b?c", "@"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(accounts); i++)
		assert_null(start(accounts[i], NULL));
	assert_int_equal(fake_http.started, 0);
}

static void answers_are_yes_no_or_unknown(void **state)
{
	static const struct {
		long status;
		const char *body;
		enum iam_grant grant;
		bool explained;
	} cases[] = {
		{200, "{\"permissions\":[\"" PERMISSION "\"]}", IAM_GRANT_YES, false},
		{200, "{\"permissions\":[\"x\",1,\"" PERMISSION "\"]}", IAM_GRANT_YES, false},
		{200, "{}", IAM_GRANT_NO, false},
		{200, "{\"permissions\":[]}", IAM_GRANT_NO, false},
		{200, "{\"permissions\":\"" PERMISSION "\"}", IAM_GRANT_NO, false},
		{200, "{\"permissions\":[\"" PERMISSION "s\"]}", IAM_GRANT_NO, false},
		{404, "{\"error\":{\"code\":404,\"status\":\"NOT_FOUND\"}}", IAM_GRANT_NO, true},
		{200, "", IAM_GRANT_UNKNOWN, true},
		{200, "[]", IAM_GRANT_UNKNOWN, true},
		{200, "<html>", IAM_GRANT_UNKNOWN, true},
		{200, "{\"permissions\":[", IAM_GRANT_UNKNOWN, true},
		{401, "{}", IAM_GRANT_UNKNOWN, true},
		{403, "{}", IAM_GRANT_UNKNOWN, true},
		{429, "", IAM_GRANT_UNKNOWN, true},
		{500, "", IAM_GRANT_UNKNOWN, true},
		{204, "", IAM_GRANT_UNKNOWN, true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		memset(&got, 0, sizeof(got));
		ask();
		fake_http_answer(cases[i].status, cases[i].body, -1);
		assert_int_equal(got.calls, 1);
		assert_int_equal(got.grant, cases[i].grant);
		assert_int_equal(got.explained, cases[i].explained);
	}
}

static void no_answer_is_unknown(void **state)
{
	(void)state;
	for (enum http_failure failure = HTTP_FAILURE_RESOLVE; failure <= HTTP_FAILURE_OTHER;
	     failure++) {
		memset(&got, 0, sizeof(got));
		ask();
		fake_http_fail(failure);
		assert_int_equal(got.calls, 1);
		assert_int_equal(got.grant, IAM_GRANT_UNKNOWN);
		assert_true(got.explained && got.failure.reason[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_request_is_the_documented_one_to_the_byte,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_quota_project_goes_with_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_no_address_is_not_asked_for, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(answers_are_yes_no_or_unknown, set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_answer_is_unknown, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
