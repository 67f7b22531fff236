/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/google/failure.h"

#include "broker/net/http_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define ACCESS "iam.serviceAccounts.getAccessToken"
#define LOGIN "gcloud auth application-default login"

struct expected {
	long status;
	const char *body;
	enum failure_class class;
	enum failure_public public;
	const char *reason;
	const char *permission;
	bool source_token_refused;
	const char *repair; /* part of the detail */
};

#define ERROR_INFO(reason, metadata)                                                          \
	"{\"error\":{\"code\":403,\"message\":\"UPSTREAM\",\"status\":\"PERMISSION_DENIED\"," \
	"\"details\":[{\"@type\":\"type.googleapis.com/google.rpc.Help\",\"links\":[]},"      \
	"{\"@type\":\"type.googleapis.com/google.rpc.ErrorInfo\",\"reason\":\"" reason "\","  \
	"\"domain\":\"googleapis.com\",\"metadata\":" metadata "}]}}"

#define TEMPORARY FAILURE_TRANSIENT, FAILURE_TEMPORARY
#define NOT_ALLOWED FAILURE_PERMANENT, FAILURE_NOT_ALLOWED
#define NO_ACCOUNT FAILURE_PERMANENT, FAILURE_NO_ACCOUNT
#define LOGIN_EXPIRED FAILURE_PERMANENT, FAILURE_LOGIN_EXPIRED

static bool is_as_expected(const struct failure *failure, const struct expected *e)
{
	return failure->class == e->class && failure->public == e->public &&
	       failure->http_status == e->status && !strcmp(failure->reason, e->reason) &&
	       !strcmp(failure->permission, e->permission) &&
	       failure->source_token_refused == e->source_token_refused &&
	       failure->retry_after_s == 0 && strstr(failure->detail, e->repair);
}

static void check(enum failure_step step, const struct expected *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct expected *const e = &cases[i];
		struct failure failure;
		memset(&failure, 0xa5, sizeof(failure));
		failure_from_answer(&failure, step,
				    &(struct http_answer){
					    .failure_text = "",
					    .status = e->status,
					    .body = e->body,
					    .body_len = strlen(e->body),
					    .content_type = "application/json",
					    .date_s = -1,
					    .retry_after_s = -1,
				    });
		if (!is_as_expected(&failure, e))
			fail_msg("%ld %s gave %s, \"%s\", %s, \"%s\": %s", e->status, e->body,
				 failure_class_name(failure.class),
				 failure_public_text(failure.public), failure.reason,
				 failure.permission, failure.detail);
		assert_int_equal(failure.step, step);
		assert_null(strstr(failure.detail, "UPSTREAM"));
		/* Whole: no text of the table was cut. */
		assert_true(strlen(failure.detail) < sizeof(failure.detail) - 1);
	}
}

static void a_failed_mint_is_classed_by_status_and_reason(void **state)
{
	static const struct expected cases[] = {
		{400, ERROR_INFO("INVALID_ARGUMENT", "{}"), NOT_ALLOWED, "INVALID_ARGUMENT", "",
		 false, "constraints/iam.allowServiceAccountCredentialLifetimeExtension"},
		{401, ERROR_INFO("ACCESS_TOKEN_EXPIRED", "{}"), TEMPORARY, "ACCESS_TOKEN_EXPIRED",
		 "", true, LOGIN},
		{401, "", TEMPORARY, "unknown", "", true, LOGIN},
		{401, ERROR_INFO("ACCESS_TOKEN_TYPE_UNSUPPORTED", "{}"), NOT_ALLOWED,
		 "ACCESS_TOKEN_TYPE_UNSUPPORTED", "", false, "kind"},
		{403, ERROR_INFO("IAM_PERMISSION_DENIED", "{\"permission\":\"" ACCESS "\"}"),
		 NOT_ALLOWED, "IAM_PERMISSION_DENIED", ACCESS, false,
		 "roles/iam.serviceAccountTokenCreator"},
		{403, ERROR_INFO("IAM_PERMISSION_DENIED", "{\"permission\":\"a.b.c9\"}"),
		 NOT_ALLOWED, "IAM_PERMISSION_DENIED", "a.b.c9", false, "minutes"},
		{403, ERROR_INFO("IAM_PERMISSION_DENIED", "{}"), NOT_ALLOWED,
		 "IAM_PERMISSION_DENIED", ACCESS, false, "roles/iam.serviceAccountTokenCreator"},
		{403,
		 ERROR_INFO("SERVICE_DISABLED", "{\"service\":\"iamcredentials.googleapis.com\"}"),
		 NOT_ALLOWED, "SERVICE_DISABLED", "", false,
		 "gcloud services enable iamcredentials.googleapis.com"},
		{403, ERROR_INFO("ACCESS_TOKEN_SCOPE_INSUFFICIENT", "{}"), NOT_ALLOWED,
		 "ACCESS_TOKEN_SCOPE_INSUFFICIENT", "", false, "cloud-platform"},
		{403, ERROR_INFO("USER_PROJECT_DENIED", "{}"), NOT_ALLOWED, "USER_PROJECT_DENIED",
		 "serviceusage.services.use", false, "roles/serviceusage.serviceUsageConsumer"},
		{403, ERROR_INFO("SECURITY_POLICY_VIOLATED", "{}"), NOT_ALLOWED,
		 "SECURITY_POLICY_VIOLATED", "", false, "VPC Service Controls"},
		{403, ERROR_INFO("SOMETHING_NEW", "{}"), NOT_ALLOWED, "SOMETHING_NEW", ACCESS,
		 false, "roles/iam.serviceAccountTokenCreator"},
		{403, "<html>UPSTREAM</html>", NOT_ALLOWED, "unknown", ACCESS, false, "proxy"},
		{403, "", NOT_ALLOWED, "unknown", ACCESS, false, "proxy"},
		{403, "{\"error\":\"UPSTREAM\"}", NOT_ALLOWED, "unknown", ACCESS, false, "proxy"},
		{404, ERROR_INFO("x", "{}"), NO_ACCOUNT, "x", "", false, "service_account"},
		{404, "<html>", NO_ACCOUNT, "unknown", "", false, "service_account"},
		{408, "", TEMPORARY, "unknown", "", false, ""},
		{429, ERROR_INFO("RATE_LIMIT_EXCEEDED", "{}"), TEMPORARY, "RATE_LIMIT_EXCEEDED", "",
		 false, "quota"},
		{500, "", TEMPORARY, "unknown", "", false, ""},
		{502, "<html>UPSTREAM</html>", TEMPORARY, "unknown", "", false, ""},
		{503, ERROR_INFO("IAM_PERMISSION_DENIED", "{\"permission\":\"a.b\"}"), TEMPORARY,
		 "IAM_PERMISSION_DENIED", "", false, ""},
		{504, "", TEMPORARY, "unknown", "", false, ""},
		{301, "", TEMPORARY, "unknown", "", false, "redirect"},
		{307, "", TEMPORARY, "unknown", "", false, "redirect"},
		{204, "", TEMPORARY, "unknown", "", false, ""},
		{409, "", TEMPORARY, "unknown", "", false, ""},
		{418, "", TEMPORARY, "unknown", "", false, ""},
		{600, "", TEMPORARY, "unknown", "", false, ""},
	};

	(void)state;
	check(FAILURE_STEP_MINT, cases, sizeof(cases) / sizeof(cases[0]));
}

static void a_failed_refresh_is_classed_by_its_oauth2_error(void **state)
{
	static const struct expected cases[] = {
		{400, "{\"error\":\"invalid_grant\",\"error_description\":\"UPSTREAM\"}",
		 LOGIN_EXPIRED, "invalid_grant", "", false, LOGIN},
		{400, "{\"error\":\"invalid_grant\",\"error_subtype\":\"invalid_rapt\"}",
		 LOGIN_EXPIRED, "invalid_rapt", "", false, LOGIN},
		{400, "{\"error\":\"invalid_grant\",\"error_subtype\":\"rapt_required\"}",
		 LOGIN_EXPIRED, "rapt_required", "", false, LOGIN},
		{400, "{\"error\":\"invalid_grant\",\"error_subtype\":\"UPSTREAM\"}", LOGIN_EXPIRED,
		 "invalid_grant", "", false, LOGIN},
		{401, "{\"error\":\"invalid_client\"}", LOGIN_EXPIRED, "invalid_client", "", false,
		 "client_secret"},
		{401, "{\"error\":\"unauthorized_client\"}", LOGIN_EXPIRED, "unauthorized_client",
		 "", false, LOGIN},
		{401, "{\"error\":\"deleted_client\"}", LOGIN_EXPIRED, "deleted_client", "", false,
		 LOGIN},
		{400, "{\"error\":\"invalid_scope\"}", NOT_ALLOWED, "invalid_scope", "", false,
		 LOGIN},
		{400, "{\"error\":\"access_denied\"}", NOT_ALLOWED, "access_denied", "", false,
		 "administrator"},
		{400, "{\"error\":\"internal_failure\"}", TEMPORARY, "internal_failure", "", false,
		 ""},
		{400, "{\"error\":\"server_error\"}", TEMPORARY, "server_error", "", false, ""},
		{400, "{\"error\":\"temporarily_unavailable\"}", TEMPORARY,
		 "temporarily_unavailable", "", false, ""},
		{400, "{\"error\":\"invalid_request\",\"error_description\":\"internal_failure\"}",
		 TEMPORARY, "internal_failure", "", false, ""},
		{400, "{\"error_description\":\"internal_failure\"}", NOT_ALLOWED, "unknown", "",
		 false, ""},
		{400, "{\"error\":\"invalid_request\"}", NOT_ALLOWED, "invalid_request", "", false,
		 "credential file"},
		{400, "", NOT_ALLOWED, "unknown", "", false, ""},
		{401, "<html>UPSTREAM</html>", NOT_ALLOWED, "unknown", "", false, ""},
		{403, "<html>UPSTREAM</html>", NOT_ALLOWED, "unknown", "", false, "proxy"},
		{404, "", NOT_ALLOWED, "unknown", "", false, "[endpoints]"},
		{408, "", TEMPORARY, "unknown", "", false, ""},
		{429, "", TEMPORARY, "unknown", "", false, ""},
		{500, "{\"error\":\"internal_failure\"}", TEMPORARY, "internal_failure", "", false,
		 ""},
		/* A server with a fault is not believed. */
		{503, "{\"error\":\"invalid_grant\"}", TEMPORARY, "invalid_grant", "", false, ""},
		{302, "", TEMPORARY, "unknown", "", false, "redirect"},
		{204, "", TEMPORARY, "unknown", "", false, ""},
		{400, "{\"error\":{\"code\":400}}", NOT_ALLOWED, "unknown", "", false, ""},
		{400, "{\"error\":\"invalid_grant\",\"error\":\"x\"}", NOT_ALLOWED, "unknown", "",
		 false, ""},
		{400, "[\"invalid_grant\"]", NOT_ALLOWED, "unknown", "", false, ""},
	};

	(void)state;
	check(FAILURE_STEP_SOURCE, cases, sizeof(cases) / sizeof(cases[0]));
}

static const struct failure_scene scene = {
	.caller = "ann@example.com",
	.account = "agent@p.iam.gserviceaccount.com",
	.repair = "log in by the REPAIR",
	.wall_s = 2000000000,
};

static void fill(struct failure *failure, enum failure_step step, long status, const char *body,
		 int64_t skew_s)
{
	failure_from_answer(failure, step,
			    &(struct http_answer){
				    .failure_text = "",
				    .status = status,
				    .body = body,
				    .body_len = strlen(body),
				    .content_type = "application/json",
				    .date_s = scene.wall_s - skew_s,
				    .retry_after_s = -1,
			    });
	failure_fill(failure, &scene);
	assert_null(strpbrk(failure->detail, "{}\""));
}

static void a_text_names_who_needs_what_where(void **state)
{
	static const struct {
		enum failure_step step;
		long status;
		const char *body;
		const char *part;
	} cases[] = {
		{FAILURE_STEP_MINT, 403, ERROR_INFO("IAM_PERMISSION_DENIED", "{}"),
		 "ann@example.com needs roles/iam.serviceAccountTokenCreator on "
		 "agent@p.iam.gserviceaccount.com itself, with: gcloud iam service-accounts "
		 "add-iam-policy-binding agent@p.iam.gserviceaccount.com "
		 "--member=user:ann@example.com --role=roles/iam.serviceAccountTokenCreator"},
		{FAILURE_STEP_MINT, 403, ERROR_INFO("IAM_PERMISSION_DENIED", "{}"),
		 "takes minutes"},
		{FAILURE_STEP_MINT, 403, "", "--member=user:ann@example.com"},
		{FAILURE_STEP_IMPERSONATE, 403, ERROR_INFO("IAM_PERMISSION_DENIED", "{}"),
		 "ann@example.com may not use agent@p.iam.gserviceaccount.com"},
		{FAILURE_STEP_MINT, 403,
		 ERROR_INFO("SERVICE_DISABLED",
			    "{\"service\":\"iam.googleapis.com\",\"consumer\":\"projects/42\"}"),
		 "gcloud services enable iam.googleapis.com --project=42;"},
		{FAILURE_STEP_MINT, 403,
		 ERROR_INFO("SERVICE_DISABLED",
			    "{\"service\":\"a b\",\"consumer\":\"projects/4;2\"}"),
		 "gcloud services enable iamcredentials.googleapis.com --project=PROJECT;"},
		{FAILURE_STEP_MINT, 403,
		 ERROR_INFO("SECURITY_POLICY_VIOLATED", "{\"uid\":\"u-1\"}"), "the unique id u-1"},
		{FAILURE_STEP_MINT, 403, ERROR_INFO("ACCESS_TOKEN_SCOPE_INSUFFICIENT", "{}"),
		 "cloud-platform: log in by the REPAIR"},
		{FAILURE_STEP_MINT, 401, "", "or log in by the REPAIR"},
		{FAILURE_STEP_SOURCE, 400,
		 "{\"error\":\"invalid_grant\",\"error_subtype\":\"invalid_rapt\"}",
		 "session length is over: log in by the REPAIR"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct failure failure;
		fill(&failure, cases[i].step, cases[i].status, cases[i].body, 0);
		if (!strstr(failure.detail, cases[i].part))
			fail_msg("%s: %s", cases[i].body, failure.detail);
	}
}

static void a_member_is_named_as_policies_do(void **state)
{
	static const char *const cases[][2] = {
		{"x@p.iam.gserviceaccount.com",
		 "--member=serviceAccount:x@p.iam.gserviceaccount.com"},
		{"x@gserviceaccount.com.example", "--member=user:x@gserviceaccount.com.example"},
		{"", "--member=MEMBER"},
		{NULL, "the source needs"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct failure failure;
		failure_from_answer(&failure, FAILURE_STEP_MINT,
				    &(struct http_answer){.failure_text = "",
							  .status = 403,
							  .body = "",
							  .content_type = "",
							  .date_s = -1,
							  .retry_after_s = -1});
		failure_fill(&failure, &(struct failure_scene){.caller = cases[i][0]});
		assert_non_null(strstr(failure.detail, cases[i][1]));
		/* Who names the names first is nearer to the call. */
		failure_fill(&failure, &scene);
		assert_null(strstr(failure.detail, "ann@"));
	}
}

static void a_skew_is_told_where_it_may_be_the_reason(void **state)
{
	static const struct {
		int64_t skew_s;
		const char *part; /* NULL: nothing is told */
	} cases[] = {
		{0, NULL},
		{60, NULL},
		{-60, NULL},
		{61,
		 "; the host's clock is 61 s ahead of Google's: set it, with: chronyc makestep"},
		{-86400, "; the host's clock is 86400 s behind Google's"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct failure failure;
		fill(&failure, FAILURE_STEP_MINT, 401, "", cases[i].skew_s);
		if (cases[i].part)
			assert_non_null(strstr(failure.detail, cases[i].part));
		else
			assert_null(strstr(failure.detail, "Google's"));
		fill(&failure, FAILURE_STEP_EXCHANGE, 400, "{\"error\":\"invalid_grant\"}",
		     cases[i].skew_s);
		assert_true(!cases[i].part == !strstr(failure.detail, "Google's"));
	}
}

/* google-cloud-go#12440: "stale", and nobody said how old. */
static void the_age_of_a_refused_subject_token_is_told(void **state)
{
	static const struct {
		int64_t issued_s;
		int64_t expires_s;
		const char *end;
	} cases[] = {
		{0, 0, "at each try"},
		{1999996400, 0, "at each try; it says that it was issued 3600 s ago"},
		{1999996400, 1999999990,
		 "at each try; it says that it was issued 3600 s ago; it ended 10 s ago"},
		{2000000100, 2000003700,
		 "; it says that it was issued 100 s ahead of our clock; it ends 3700 s from now"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct failure failure;
		failure_from_answer(&failure, FAILURE_STEP_EXCHANGE,
				    &(struct http_answer){.failure_text = "",
							  .status = 400,
							  .body = "{\"error\":\"invalid_grant\"}",
							  .body_len = 25,
							  .content_type = "",
							  .date_s = -1,
							  .retry_after_s = -1});
		failure_fill(&failure, &(struct failure_scene){.wall_s = 2000000000,
							       .issued_s = cases[i].issued_s,
							       .expires_s = cases[i].expires_s});
		const size_t len = strlen(failure.detail);
		const size_t end_len = strlen(cases[i].end);
		assert_true(len > end_len);
		assert_string_equal(failure.detail + len - end_len, cases[i].end);
	}
}

static void a_text_with_very_long_names_ends_in_its_room(void **state)
{
	char name[255];
	struct failure failure;

	(void)state;
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	failure_from_answer(&failure, FAILURE_STEP_MINT,
			    &(struct http_answer){.failure_text = "",
						  .status = 403,
						  .body = "",
						  .content_type = "",
						  .date_s = -1,
						  .retry_after_s = -1});
	failure_fill(&failure, &(struct failure_scene){
				       .caller = name,
				       .account = name,
				       .repair = name,
			       });
	assert_int_equal(strlen(failure.detail), sizeof(failure.detail) - 1);
}

static void an_upstream_word_that_is_not_one_is_unknown(void **state)
{
#define SIXTY_THREE "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggg"
	static const struct expected cases[] = {
		{403, ERROR_INFO("", "{}"), NOT_ALLOWED, "unknown", ACCESS, false, ""},
		{403, ERROR_INFO("A B", "{}"), NOT_ALLOWED, "unknown", ACCESS, false, ""},
		{403, ERROR_INFO("A\\nB", "{}"), NOT_ALLOWED, "unknown", ACCESS, false, ""},
		{403, ERROR_INFO("A=\\\"B", "{}"), NOT_ALLOWED, "unknown", ACCESS, false, ""},
		{403, ERROR_INFO("\xc3\xa4", "{}"), NOT_ALLOWED, "unknown", ACCESS, false, ""},
		{403, ERROR_INFO(SIXTY_THREE, "{}"), NOT_ALLOWED, SIXTY_THREE, ACCESS, false, ""},
		{403, ERROR_INFO(SIXTY_THREE "h", "{}"), NOT_ALLOWED, "unknown", ACCESS, false, ""},
		{403, ERROR_INFO("A.b-C_9", "{}"), NOT_ALLOWED, "A.b-C_9", ACCESS, false, ""},
		{403, ERROR_INFO("A", "{\"permission\":\"a b\"}"), NOT_ALLOWED, "A", ACCESS, false,
		 ""},
		{403, ERROR_INFO("A", "{\"permission\":\"\"}"), NOT_ALLOWED, "A", ACCESS, false,
		 ""},
		{403, ERROR_INFO("A", "{\"permission\":7}"), NOT_ALLOWED, "A", ACCESS, false, ""},
		{403, ERROR_INFO("A", "{\"permission\":\"" SIXTY_THREE SIXTY_THREE "\"}"),
		 NOT_ALLOWED, "A", ACCESS, false, ""},
		{403, ERROR_INFO("A", "[]"), NOT_ALLOWED, "A", ACCESS, false, ""},
		{403, "{\"error\":{\"details\":[{\"reason\":\"SERVICE_DISABLED\"}]}}", NOT_ALLOWED,
		 "unknown", ACCESS, false, ""},
		{403, "{\"error\":{\"details\":{\"reason\":\"SERVICE_DISABLED\"}}}", NOT_ALLOWED,
		 "unknown", ACCESS, false, ""},
		{403, "{\"error\":{\"details\":[1,null,\"x\",[]]}}", NOT_ALLOWED, "unknown", ACCESS,
		 false, ""},
	};
#undef SIXTY_THREE

	(void)state;
	check(FAILURE_STEP_MINT, cases, sizeof(cases) / sizeof(cases[0]));
}

static void no_answer_at_all_is_transient(void **state)
{
	static const struct {
		enum http_failure what;
		const char *reason;
	} cases[] = {
		{HTTP_FAILURE_RESOLVE, "resolve"},
		{HTTP_FAILURE_CONNECT, "connect"},
		{HTTP_FAILURE_TLS, "tls"},
		{HTTP_FAILURE_CERTIFICATE, "certificate"},
		{HTTP_FAILURE_TIMEOUT, "timeout"},
		{HTTP_FAILURE_BROKEN, "broken"},
		{HTTP_FAILURE_TOO_LARGE, "too_large"},
		{HTTP_FAILURE_OTHER, "other"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct failure failure;
		failure_from_answer(&failure, FAILURE_STEP_MINT,
				    &(struct http_answer){
					    .failure = cases[i].what,
					    .failure_text = "UPSTREAM",
					    .status = 403,
					    .body = "",
					    .content_type = "",
					    .date_s = -1,
					    .retry_after_s = -1,
				    });
		assert_int_equal(failure.class, FAILURE_TRANSIENT);
		assert_int_equal(failure.public, FAILURE_TEMPORARY);
		assert_int_equal(failure.http_status, 0);
		assert_string_equal(failure.reason, cases[i].reason);
		assert_string_equal(failure.permission, "");
		assert_true(strlen(failure.detail) > 0);
		assert_null(strstr(failure.detail, "UPSTREAM"));
		assert_false(failure.source_token_refused);
	}
}

static void retry_after_counts_from_0_to_60_seconds(void **state)
{
	static const int64_t cases[][2] = {
		{-1, 0}, {0, 0}, {1, 1}, {59, 59}, {60, 60}, {61, 60}, {86400, 60}, {INT64_MAX, 60},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct failure failure;
		failure_from_answer(&failure, FAILURE_STEP_MINT,
				    &(struct http_answer){
					    .failure_text = "",
					    .status = 429,
					    .body = "",
					    .content_type = "",
					    .date_s = -1,
					    .retry_after_s = cases[i][0],
				    });
		assert_int_equal(failure.retry_after_s, cases[i][1]);
	}
}

static void a_failure_of_our_own_carries_its_word_and_text(void **state)
{
	struct failure failure;

	(void)state;
	failure_set(&failure, FAILURE_STEP_MINT, FAILURE_TRANSIENT, "bad_answer", "no %s", "field");
	assert_int_equal(failure.public, FAILURE_TEMPORARY);
	assert_int_equal(failure.step, FAILURE_STEP_MINT);
	assert_string_equal(failure.reason, "bad_answer");
	assert_string_equal(failure.detail, "no field");
	assert_int_equal(failure.http_status, 0);
	failure_set(&failure, FAILURE_STEP_SOURCE, FAILURE_PERMANENT, "bad_key", "x");
	assert_int_equal(failure.public, FAILURE_NOT_ALLOWED);
}

/* Contract, section 4. */
static void the_public_texts_are_the_four_of_the_contract(void **state)
{
	(void)state;
	assert_string_equal(failure_public_text(FAILURE_TEMPORARY),
			    "credential temporarily unavailable");
	assert_string_equal(failure_public_text(FAILURE_NOT_ALLOWED),
			    "the broker may not use this account");
	assert_string_equal(failure_public_text(FAILURE_NO_ACCOUNT), "account not available");
	assert_string_equal(failure_public_text(FAILURE_LOGIN_EXPIRED),
			    "the host's login has expired");
	assert_string_equal(failure_class_name(FAILURE_TRANSIENT), "transient");
	assert_string_equal(failure_class_name(FAILURE_PERMANENT), "permanent");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failed_mint_is_classed_by_status_and_reason),
		cmocka_unit_test(a_failed_refresh_is_classed_by_its_oauth2_error),
		cmocka_unit_test(a_text_names_who_needs_what_where),
		cmocka_unit_test(a_member_is_named_as_policies_do),
		cmocka_unit_test(a_skew_is_told_where_it_may_be_the_reason),
		cmocka_unit_test(the_age_of_a_refused_subject_token_is_told),
		cmocka_unit_test(a_text_with_very_long_names_ends_in_its_room),
		cmocka_unit_test(an_upstream_word_that_is_not_one_is_unknown),
		cmocka_unit_test(no_answer_at_all_is_transient),
		cmocka_unit_test(retry_after_counts_from_0_to_60_seconds),
		cmocka_unit_test(a_failure_of_our_own_carries_its_word_and_text),
		cmocka_unit_test(the_public_texts_are_the_four_of_the_contract),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
