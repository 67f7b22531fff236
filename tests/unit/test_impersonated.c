/* SPDX-License-Identifier: Apache-2.0 */
/* A credential that mints for the source's own account: `gcloud auth application-default login
 * --impersonate-service-account` leaves it. */
#include "tests/unit/rsa_fixture.h"
#include "tests/unit/source_fixture.h"

#define A "middle@p.iam.gserviceaccount.com"
#define TYPE "\"type\":\"impersonated_service_account\""
#define URL(account)                                                                        \
	"\"service_account_impersonation_url\":\"https://iamcredentials.googleapis.com/v1/" \
	"projects/-/serviceAccounts/" account ":generateAccessToken\""
#define USER                                                                    \
	"{\"type\":\"authorized_user\",\"client_id\":\"id\",\"client_secret\":" \
	"\"SECRET\",\"refresh_token\":\"SECRET\"}"
#define SOURCE(source) "\"source_credentials\":" source
#define GOOD "{" TYPE "," URL(A) "," SOURCE(USER) "}"
#define LOGIN "gcloud auth application-default login --impersonate-service-account=ACCOUNT"

static int set_up(void **state)
{
	(void)state;
	source_set_up();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	source_tear_down();
	return 0;
}

static void answer_login(const char *token)
{
	char body[128];

	(void)snprintf(body, sizeof(body), "{\"access_token\":\"%s\",\"expires_in\":3599}", token);
	assert_string_equal(fake_http_request()->url, "https://oauth2.googleapis.com/token");
	fake_http_answer(200, body, FAKE_WALL_S);
}

static void answer_mint(const char *token)
{
	char body[128];

	(void)snprintf(body, sizeof(body),
		       "{\"accessToken\":\"%s\",\"expireTime\":\"2026-11-29T11:00:00Z\"}", token);
	fake_http_answer(200, body, FAKE_WALL_S);
}

static void the_accounts_token_is_the_sources(void **state)
{
	struct credential_info info;

	(void)state;
	source_open_file(GOOD);
	credential_info(source.credential, &info);
	assert_string_equal(info.type, "impersonated_service_account");
	assert_string_equal(info.principal, A);
	assert_string_equal(info.path, source.path);
	source_ask();
	answer_login("user-token");
	assert_string_equal(fake_http_request()->url,
			    "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/" A
			    ":generateAccessToken");
	assert_string_equal(fake_http_request()->bearer, "user-token");
	/* Nothing but what it is for, and no delegates where there are none. */
	assert_string_equal(fake_http_request()->body,
			    "{\"scope\":[\"https://www.googleapis.com/auth/iam\"],"
			    "\"lifetime\":\"3600s\"}");
	assert_null(fake_http_request()->quota_project);
	answer_mint("middle-token");
	source_has_token("middle-token");
}

static void what_is_behind_it_keeps_it_in_use(void **state)
{
	static const struct strv none = {0};

	(void)state;
	source_open_file(GOOD);
	const struct credential_route route = credential_route(source.credential, A, &none);
	assert_ptr_not_equal(route.credential, source.credential);
	credential_hold(route.credential);
	assert_true(credential_is_busy(source.credential));
	credential_hold(source.credential);
	credential_release(route.credential);
	assert_true(credential_is_busy(source.credential));
	assert_false(credential_is_busy(route.credential));
	credential_release(source.credential);
	assert_false(credential_is_busy(source.credential));
}

static void a_login_within_is_renewed_with_the_whole_file(void **state)
{
	static const struct strv none = {0};
	char command[256];

	(void)state;
	source_open_file(GOOD);
	(void)snprintf(command, sizeof(command),
		       "log in again with: gcloud auth application-default login "
		       "--impersonate-service-account=" A
		       ", then copy the file that it writes to %s",
		       source.path);
	assert_string_equal(credential_repair(source.credential), command);
	const struct credential_route route = credential_route(source.credential, A, &none);
	assert_string_equal(credential_repair(route.credential), command);
}

static void a_refusal_on_the_way_names_the_account_on_the_way(void **state)
{
	(void)state;
	source_open_file(GOOD);
	source_ask();
	answer_login("user-token");
	fake_http_answer(403, "", FAKE_WALL_S);
	assert_true(source.failed);
	assert_non_null(strstr(source.failure.detail, "on " A " itself"));
	/* Who mints does not name another one. */
	failure_fill(&source.failure, &(struct failure_scene){.account = "agent@p.example"});
	assert_null(strstr(source.failure.detail, "agent@"));
}

/*
 * stacklok/toolhive#6237: each token by its own expiry.
 * google-auth-library-python#516: an impersonating source refreshed what was valid still.
 */
static void each_token_is_kept_by_its_own_expiry(void **state)
{
	(void)state;
	source_open_file(GOOD);
	source_ask();
	fake_http_answer(200, "{\"access_token\":\"user-1\",\"expires_in\":7200}", FAKE_WALL_S);
	answer_mint("middle-1");
	source_ask();
	source_has_token("middle-1");
	assert_int_equal(fake_http.started, 2);
	fake_clock_advance_ms(&source.fake, (int64_t)3300 * 1000);
	source_ask();
	timer_queue_run(&source.timers);
	/* The account's token is renewed with the login's, which is still good. */
	assert_string_equal(fake_http_request()->bearer, "user-1");
	fake_http_answer(200,
			 "{\"accessToken\":\"middle-2\",\"expireTime\":\"2026-11-29T12:00:00Z\"}",
			 FAKE_WALL_S + 3300);
	source_has_token("middle-2");
	assert_int_equal(fake_http.started, 3);
}

static void delegates_are_taken_as_addresses_or_as_names(void **state)
{
	(void)state;
	source_open_file("{" TYPE "," URL("middle%40p.iam.gserviceaccount.com") "," SOURCE(
		USER) ",\"delegates\":[\"d1@p.iam.gserviceaccount.com\","
		      "\"projects/-/serviceAccounts/d2@p.iam.gserviceaccount.com\"]}");
	source_ask();
	answer_login("user-token");
	assert_non_null(strstr(fake_http_request()->url, "/" A ":generateAccessToken"));
	assert_non_null(
		strstr(fake_http_request()->body,
		       "\"delegates\":[\"projects/-/serviceAccounts/d1@p.iam.gserviceaccount.com\","
		       "\"projects/-/serviceAccounts/d2@p.iam.gserviceaccount.com\"]"));
	answer_mint("t");
	source_has_token("t");
}

static void many_callers_make_one_mint(void **state)
{
	struct credential_call *calls[3];

	(void)state;
	source_open_file(GOOD);
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		calls[i] = credential_get_token(source.credential, source_result, &source);
	/* source_result() wants a handle each time. */
	credential_call_cancel(calls[0]);
	credential_call_cancel(calls[1]);
	source.call = calls[2];
	timer_queue_run(&source.timers);
	answer_login("user-token");
	answer_mint("t");
	source_has_token("t");
	assert_int_equal(fake_http.started, 2);
}

static void a_mint_for_that_very_account_is_one_call(void **state)
{
	static const struct strv none;
	AUTO_STRV struct strv some = {0};

	(void)state;
	source_open_file("{" TYPE "," URL(A) "," SOURCE(
		USER) ",\"delegates\":[\"d1@p.iam.gserviceaccount.com\"]}");
	struct credential_route route = credential_route(source.credential, A, &none);
	assert_ptr_not_equal(route.credential, source.credential);
	assert_int_equal(route.delegates->count, 1);
	assert_string_equal(route.delegates->items[0], "d1@p.iam.gserviceaccount.com");
	source.call = credential_get_token(route.credential, source_result, &source);
	timer_queue_run(&source.timers);
	answer_login("user-token");
	source_has_token("user-token");
	assert_int_equal(fake_http.started, 1);
	/* For another one, and through the profile's delegates, it is the source itself. */
	route = credential_route(source.credential, "b@p.iam.gserviceaccount.com", &none);
	assert_ptr_equal(route.credential, source.credential);
	assert_ptr_equal(route.delegates, &none);
	strv_add(&some, "d2@p.iam.gserviceaccount.com", 28);
	route = credential_route(source.credential, A, &some);
	assert_ptr_equal(route.credential, source.credential);
	assert_ptr_equal(route.delegates, &some);
}

static void a_login_has_nothing_behind_it(void **state)
{
	static const struct strv none;

	(void)state;
	source_open_file(USER);
	const struct credential_route route = credential_route(source.credential, A, &none);
	assert_ptr_equal(route.credential, source.credential);
	assert_ptr_equal(route.delegates, &none);
}

static void a_failed_login_is_told_as_it_is(void **state)
{
	(void)state;
	source_open_file(GOOD);
	source_ask();
	fake_http_answer(400, "{\"error\":\"invalid_grant\",\"error_subtype\":\"invalid_rapt\"}",
			 FAKE_WALL_S);
	source_has_failed(FAILURE_PERMANENT, "invalid_rapt", "gcloud auth application-default");
	assert_string_equal(failure_step_name(source.failure.step), "source");
}

static void a_failed_mint_is_told_as_one_of_the_source(void **state)
{
	static const struct {
		long status;
		enum failure_class class;
		const char *detail;
	} cases[] = {
		{400, FAILURE_PERMANENT, "service_account_impersonation_url"},
		{403, FAILURE_PERMANENT, "roles/iam.serviceAccountTokenCreator"},
		{404, FAILURE_PERMANENT, "service_account_impersonation_url"},
		{429, FAILURE_TRANSIENT, "quota"},
		{503, FAILURE_TRANSIENT, "tried again"},
	};

	(void)state;
	source_open_file(GOOD);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		source_ask();
		if (i)
			timer_queue_run(&source.timers);
		else
			answer_login("user-token");
		fake_http_answer(cases[i].status, "", FAKE_WALL_S);
		source_has_failed(cases[i].class, "unknown", cases[i].detail);
		assert_string_equal(failure_step_name(source.failure.step), "impersonate");
	}
}

static void a_refused_token_of_the_login_is_dropped_and_two_are_the_end(void **state)
{
	(void)state;
	source_open_file(GOOD);
	source_ask();
	answer_login("user-1");
	fake_http_answer(401, "", FAKE_WALL_S);
	source_has_failed(FAILURE_TRANSIENT, "unknown", "refused");
	assert_false(source.failure.source_token_refused);
	source_ask();
	answer_login("user-2");
	fake_http_answer(401, "", FAKE_WALL_S);
	source_has_failed(FAILURE_PERMANENT, "unknown", "refused");
	assert_int_equal(source.failure.public, FAILURE_LOGIN_EXPIRED);
	source_ask();
	answer_login("user-3");
	answer_mint("t");
	source_has_token("t");
}

static void a_key_of_a_service_account_may_stand_within(void **state)
{
	EVP_PKEY *const rsa = EVP_RSA_gen(2048);
	AUTO_FREE char *pem = pem_pkcs8(rsa);

	(void)state;
	EVP_PKEY_free(rsa);
	json_auto_t *root =
		json_pack("{s:s, s:s, s:{s:s, s:s, s:s}}", "type", "impersonated_service_account",
			  "service_account_impersonation_url",
			  "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/" A
			  ":generateAccessToken",
			  "source_credentials", "type", "service_account", "client_email",
			  "sa@p.iam.gserviceaccount.com", "private_key", pem);
	AUTO_FREE char *text = json_dumps(root, 0);
	source_open_file(text);
	source_ask();
	timer_queue_run(&source.timers);
	assert_memory_equal(fake_http_request()->bearer, "eyJ", 3);
	answer_mint("t");
	source_has_token("t");
}

static void an_external_account_may_stand_within(void **state)
{
	(void)state;
	AUTO_FREE char *text = source_expand("{" TYPE "," URL(A) "," SOURCE(
		"{\"type\":\"external_account\",\"audience\":\"a\",\"subject_token_type\":"
		"\"b\",\"token_url\":\"https://sts.googleapis.com/v1/token\","
		"\"credential_source\":{\"file\":\"@/subject\"}}") "}");
	source_open_file(text);
	source_write("subject", 0600, "s");
	source_ask();
	fake_http_answer(200, "{\"access_token\":\"federated\",\"expires_in\":3599}", FAKE_WALL_S);
	assert_string_equal(fake_http_request()->bearer, "federated");
	answer_mint("t");
	source_has_token("t");
}

static void a_wrong_file_is_refused_with_field_and_repair(void **state)
{
	static const struct {
		const char *text;
		const char *what;
		const char *repair;
	} cases[] = {
		{"{" TYPE "," SOURCE(USER) "}",
		 "field \"service_account_impersonation_url\" is missing", LOGIN},
		{"{" TYPE "," URL("middle") "," SOURCE(USER) "}",
		 "field \"service_account_impersonation_url\" is ", LOGIN},
		{"{" TYPE "," URL("a@b.c:generateAccessToken") "," SOURCE(USER) "}",
		 "field \"service_account_impersonation_url\" is ", LOGIN},
		{"{" TYPE ",\"service_account_impersonation_url\":\"https://iamcredentials."
		 "googleapis.com/v1/projects/-/serviceAccounts/" A
		 ":generateIdToken\"," SOURCE(USER) "}",
		 "field \"service_account_impersonation_url\" is ", LOGIN},
		{"{" TYPE
		 ",\"service_account_impersonation_url\":\"https://evil.example/v1/projects"
		 "/-/serviceAccounts/" A ":generateAccessToken\"," SOURCE(USER) "}",
		 "field \"service_account_impersonation_url\" is \"https://evil.example",
		 "get the file again"},
		{"{" TYPE "," URL(A) "}", "field \"source_credentials\" is missing or no object",
		 "application-default login"},
		{"{" TYPE "," URL(A) "," SOURCE("\"x\"") "}",
		 "field \"source_credentials\" is missing or no object",
		 "application-default login"},
		{"{" TYPE "," URL(A) "," SOURCE("{\"type\":\"authorized_user\"}") "}",
		 "field \"source_credentials.client_id\" is missing", "log in again"},
		{"{" TYPE "," URL(A) "," SOURCE(GOOD) "}",
		 "field \"source_credentials.service_account_impersonation_url\" makes a second",
		 "delegates"},
		{"{" TYPE "," URL(A) "," SOURCE("{\"type\":\"impersonated_service_account\"}") "}",
		 "field \"source_credentials.type\" is \"impersonated_service_account\"",
		 "supported there are authorized_user"},
		{"{" TYPE
		 "," URL(A) "," SOURCE("{\"type\":\"external_account_authorized_user\"}") "}",
		 "field \"source_credentials.type\" is \"external_account_authorized_user\"",
		 "supported there are authorized_user"},
		{"{" TYPE "," URL(A) "," SOURCE("{}") "}", "field \"source_credentials.type\" is ",
		 "supported there are authorized_user"},
		{"{" TYPE "," URL(A) "," SOURCE(
			 "{\"type\":\"authorized_user\",\"universe_domain\":\"x.example\"}") "}",
		 "field \"source_credentials.universe_domain\" is \"x.example\"",
		 "universe_domain under"},
		{"{" TYPE "," URL(A) "," SOURCE(
			 "{\"type\":\"authorized_user\",\"token_uri\":\"https://evil.example/\"}") "}",
		 "field \"source_credentials.token_uri\" is ", "get the file again"},
		{"{" TYPE "," URL(A) "," SOURCE(
			 "{\"type\":\"external_account\",\"audience\":\"a\",\"subject_token_type\":"
			 "\"b\",\"token_url\":\"https://sts.googleapis.com/v1/token\","
			 "\"credential_source\":{\"file\":\"x\"}}") "}",
		 "field \"source_credentials.credential_source.file\" is no absolute path",
		 "folders"},
		{"{" TYPE "," URL(A) "," SOURCE(USER) ",\"delegates\":\"" A "\"}",
		 "field \"delegates\" is no list", LOGIN},
		{"{" TYPE "," URL(A) "," SOURCE(USER) ",\"delegates\":[\"x/y\"]}",
		 "field \"delegates\" holds \"x/y\"", LOGIN},
		{"{" TYPE "," URL(A) "," SOURCE(USER) ",\"delegates\":[7]}",
		 "field \"delegates\" holds \"\"", LOGIN},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		source_refused_file(cases[i].text, cases[i].what, cases[i].repair);
	source_write("source.json", 0644, GOOD);
	source_refused(source.path, "chmod o-r");
}

static void in_another_universe_the_inner_one_need_not_name_it(void **state)
{
	(void)state;
	source.options.universe_domain = "s3nsapis.fr";
	source.options.iamcredentials_endpoint = "https://iamcredentials.s3nsapis.fr";
	source_open_file("{" TYPE ",\"universe_domain\":\"s3nsapis.fr\","
			 "\"service_account_impersonation_url\":\"https://iamcredentials.s3nsapis."
			 "fr/v1/projects/-/serviceAccounts/" A
			 ":generateAccessToken\"," SOURCE(USER) "}");
	source_ask();
	answer_login("user-token");
	assert_memory_equal(fake_http_request()->url, "https://iamcredentials.s3nsapis.fr/", 35);
	fake_http_fail(HTTP_FAILURE_CONNECT);
}

static void a_source_that_goes_ends_what_it_began(void **state)
{
	(void)state;
	for (int steps = 0; steps < 2; steps++) {
		source_open_file(GOOD);
		source_ask();
		if (steps)
			answer_login("user-token");
		credential_call_cancel(source.call);
		credential_free(source.credential);
		source.credential = NULL;
		assert_int_equal(fake_http.count, 0);
	}
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(the_accounts_token_is_the_sources),
		CASE(what_is_behind_it_keeps_it_in_use),
		CASE(a_login_within_is_renewed_with_the_whole_file),
		CASE(a_refusal_on_the_way_names_the_account_on_the_way),
		CASE(each_token_is_kept_by_its_own_expiry),
		CASE(delegates_are_taken_as_addresses_or_as_names),
		CASE(many_callers_make_one_mint),
		CASE(a_mint_for_that_very_account_is_one_call),
		CASE(a_login_has_nothing_behind_it),
		CASE(a_failed_login_is_told_as_it_is),
		CASE(a_failed_mint_is_told_as_one_of_the_source),
		CASE(a_refused_token_of_the_login_is_dropped_and_two_are_the_end),
		CASE(a_key_of_a_service_account_may_stand_within),
		CASE(an_external_account_may_stand_within),
		CASE(a_wrong_file_is_refused_with_field_and_repair),
		CASE(in_another_universe_the_inner_one_need_not_name_it),
		CASE(a_source_that_goes_ends_what_it_began),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
