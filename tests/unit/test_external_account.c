/* SPDX-License-Identifier: Apache-2.0 */
/* Workload and workforce identity federation with a subject token of a file or a URL. */
#include "tests/unit/source_fixture.h"

#define AUDIENCE                                                                    \
	"//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/" \
	"providers/q"
#define WORKFORCE "//iam.googleapis.com/locations/global/workforcePools/p/providers/q"
#define TYPE "\"type\":\"external_account\""
#define TOKEN_URL "\"token_url\":\"https://sts.googleapis.com/v1/token\""
#define SUBJECT_TYPE "\"subject_token_type\":\"urn:ietf:params:oauth:token-type:jwt\""
#define COMMON TYPE ",\"audience\":\"" AUDIENCE "\"," SUBJECT_TYPE "," TOKEN_URL
#define FILE_SOURCE "\"credential_source\":{\"file\":\"@/subject\"}"
#define IMPERSONATION                                                                       \
	"\"service_account_impersonation_url\":\"https://iamcredentials.googleapis.com/v1/" \
	"projects/-/serviceAccounts/bastion@p.iam.gserviceaccount.com:generateAccessToken\""
#define CREATE "gcloud iam workload-identity-pools create-cred-config"

static int set_up(void **state)
{
	(void)state;
	source_set_up();
	strv_add(&source.hosts, "tokens.example.com", strlen("tokens.example.com"));
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	source_tear_down();
	return 0;
}

static void open_text(const char *text)
{
	AUTO_FREE char *expanded = source_expand(text);

	source_open_file(expanded);
}

static void refused(const char *text, const char *what, const char *repair)
{
	AUTO_FREE char *expanded = source_expand(text);

	source_refused_file(expanded, what, repair);
}

static void answer_sts(const char *token)
{
	char body[160];

	(void)snprintf(body, sizeof(body),
		       "{\"access_token\":\"%s\",\"issued_token_type\":\"x\",\"token_type\":"
		       "\"Bearer\",\"expires_in\":3599}",
		       token);
	assert_string_equal(fake_http_request()->url, "https://sts.googleapis.com/v1/token");
	fake_http_answer(200, body, FAKE_WALL_S);
}

static void subject_sent(const char *subject)
{
	char field[160];

	(void)snprintf(field, sizeof(field), "&subject_token=%s&subject_token_type=", subject);
	if (!strstr(fake_http_request()->body, field))
		fail_msg("%s", fake_http_request()->body);
}

/* Azure/azure-sdk-for-rust#1739: the token's file was read once. */
static void a_file_is_read_anew_at_every_refresh_and_trimmed(void **state)
{
	struct credential_info info;

	(void)state;
	open_text("{" COMMON "," FILE_SOURCE "}");
	credential_info(source.credential, &info);
	assert_string_equal(info.type, "external_account");
	source_write("subject", 0600, "  first\r\n\n");
	source_ask();
	subject_sent("first");
	assert_null(fake_http_request()->basic);
	answer_sts("federated-1");
	source_has_token("federated-1");
	source_write("subject", 0600, "second\n");
	source_ask();
	source_has_token("federated-1");
	fake_clock_advance_ms(&source.fake, (int64_t)3400 * 1000);
	source_ask();
	subject_sent("second");
	answer_sts("federated-2");
	source_has_token("federated-2");
}

static void a_field_of_a_json_file_is_the_token(void **state)
{
	(void)state;
	open_text("{" COMMON ",\"credential_source\":{\"file\":\"@/subject\",\"format\":{\"type\":"
		  "\"json\",\"subject_token_field_name\":\"id\"}}}");
	source_write("subject", 0600, "{\"id\":\"inner\\n\",\"other\":1}");
	source_ask();
	subject_sent("inner");
	answer_sts("t");
	source_has_token("t");
}

static void a_file_without_a_token_fails_for_now(void **state)
{
	static const struct {
		const char *text; /* NULL: no file */
		const char *reason;
	} plain[] = {{NULL, "subject_token_file"},
		     {"", "no_subject_token"},
		     {" \n", "no_subject_token"}};
	static const char *const json[] = {"",
					   "{",
					   "[\"id\"]",
					   "{\"x\":\"SECRET\"}",
					   "{\"id\":7}",
					   "{\"id\":\" \"}",
					   "{\"id\":\"a\",\"id\":\"b\"}"};

	(void)state;
	open_text("{" COMMON "," FILE_SOURCE "}");
	for (size_t i = 0; i < ARRAY_LEN(plain); i++) {
		if (plain[i].text)
			source_write("subject", 0600, plain[i].text);
		source_ask();
		source_has_failed(FAILURE_TRANSIENT, plain[i].reason, "what writes it");
		assert_string_equal(failure_step_name(source.failure.step), "subject_token");
	}
	open_text("{" COMMON ",\"credential_source\":{\"file\":\"@/subject\",\"format\":{\"type\":"
		  "\"json\",\"subject_token_field_name\":\"id\"}}}");
	for (size_t i = 0; i < ARRAY_LEN(json); i++) {
		source_write("subject", 0600, json[i]);
		source_ask();
		source_has_failed(FAILURE_TRANSIENT, "no_subject_token", "what writes it");
	}
	assert_int_equal(fake_http.started, 0);
}

static void a_subject_token_has_a_cap(void **state)
{
	const size_t cap = (size_t)64 << 10;
	AUTO_FREE char *text = xcalloc(1, cap + 2);

	(void)state;
	open_text("{" COMMON "," FILE_SOURCE "}");
	/* The worst case: each byte takes three. */
	memset(text, '%', cap);
	source_write("subject", 0600, text);
	source_ask();
	answer_sts("t");
	source_has_token("t");
	credential_drop_token(source.credential);
	text[cap] = '%';
	source_write("subject", 0600, text);
	source_ask();
	source_has_failed(FAILURE_TRANSIENT, "no_subject_token", "larger");
}

static void a_url_is_asked_with_the_headers_of_the_file(void **state)
{
	(void)state;
	open_text("{" COMMON ",\"credential_source\":{\"url\":\"https://tokens.example.com:8443/t?"
		  "a=b\",\"headers\":{\"Authorization\":\"bearer SECRET\",\"X-One\":\"1\"},"
		  "\"format\":{\"type\":\"json\",\"subject_token_field_name\":\"value\"}}}");
	source_ask();
	assert_string_equal(fake_http_request()->method, "GET");
	assert_string_equal(fake_http_request()->url, "https://tokens.example.com:8443/t?a=b");
	assert_string_equal(fake_http_request()->fields,
			    "Authorization: bearer SECRET\nX-One: 1\n");
	assert_null(fake_http_request()->bearer);
	fake_http_answer(200, "{\"value\":\"from-url\"}", FAKE_WALL_S);
	subject_sent("from-url");
	answer_sts("t");
	source_has_token("t");
}

static void an_answer_of_the_url_that_is_not_200_fails(void **state)
{
	static const struct {
		long status;
		enum failure_class class;
		const char *detail;
	} cases[] = {
		{401, FAILURE_PERMANENT, "headers"},	 {403, FAILURE_PERMANENT, "headers"},
		{404, FAILURE_PERMANENT, "url"},	 {302, FAILURE_TRANSIENT, "redirect"},
		{204, FAILURE_TRANSIENT, "tried again"}, {429, FAILURE_TRANSIENT, "tried again"},
		{500, FAILURE_TRANSIENT, "tried again"},
	};

	(void)state;
	open_text("{" COMMON ",\"credential_source\":{\"url\":\"https://tokens.example.com/t\"}}");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		source_ask();
		fake_http_answer(cases[i].status, "{\"error\":\"SECRET\"}", FAKE_WALL_S);
		source_has_failed(cases[i].class, "unknown", cases[i].detail);
		assert_int_equal(source.failure.http_status, cases[i].status);
	}
	source_ask();
	fake_http_fail(HTTP_FAILURE_TIMEOUT);
	source_has_failed(FAILURE_TRANSIENT, "timeout", "in time");
	source_ask();
	fake_http_answer(200, "\n", FAKE_WALL_S);
	source_has_failed(FAILURE_TRANSIENT, "no_subject_token", "empty");
}

static void a_url_of_a_host_that_is_not_listed_is_refused(void **state)
{
	static const char *const urls[] = {
		"https://other.example.com/t",
		"https://tokens.example.com.evil.example/t",
		"https://tokens.example.com@evil.example/t",
		"https://evil.example/?https://tokens.example.com/t",
		"https://a.tokens.example.com/t",
		"http://tokens.example.com/t",
		"http://127.0.0.1:1/t",
		"http://169.254.169.254/t",
		"https://tokens.example.com/t\\n",
		"https://tokens.example.com/a b",
		"file:///etc/passwd",
		"tokens.example.com/t",
	};
	char text[512];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
		(void)snprintf(text, sizeof(text),
			       "{" COMMON ",\"credential_source\":{\"url\":\"%s\"}}", urls[i]);
		source_refused_file(text, "field \"credential_source.url\" is ",
				    "subject_token_hosts under [source]");
	}
	source.options.allow_http_loopback = true;
	refused("{" COMMON ",\"credential_source\":{\"url\":\"http://10.0.0.1/t\"}}",
		"field \"credential_source.url\" is ", "subject_token_hosts");
	refused("{" COMMON ",\"credential_source\":{\"url\":\"http://localhost.evil.example/t\"}}",
		"field \"credential_source.url\" is ", "subject_token_hosts");
}

static void plain_http_is_for_loopback_with_the_key_only(void **state)
{
	static const char *const urls[] = {"http://127.0.0.1:1/t", "http://localhost:1/t",
					   "http://[::1]:1/t", "HTTPS://Tokens.Example.COM/t"};
	char text[512];

	(void)state;
	source.options.allow_http_loopback = true;
	for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
		(void)snprintf(text, sizeof(text),
			       "{" COMMON ",\"credential_source\":{\"url\":\"%s\"}}", urls[i]);
		source_open_file(text);
	}
}

static void a_workforce_pool_names_its_project_unless_there_is_a_client(void **state)
{
	(void)state;
	source_write("subject", 0600, "s");
	open_text("{" TYPE ",\"audience\":\"" WORKFORCE "\"," SUBJECT_TYPE "," TOKEN_URL
		  ",\"workforce_pool_user_project\":\"my-p\"," FILE_SOURCE "}");
	source_ask();
	assert_non_null(strstr(fake_http_request()->body, "&options=%257B%2522userProject"));
	answer_sts("t");
	open_text("{" TYPE ",\"audience\":\"" WORKFORCE "\"," SUBJECT_TYPE "," TOKEN_URL
		  ",\"client_id\":\"id\",\"client_secret\":\"SECRET\""
		  ",\"workforce_pool_user_project\":\"my-p\"," FILE_SOURCE "}");
	source_ask();
	assert_null(strstr(fake_http_request()->body, "options"));
	assert_string_equal(fake_http_request()->basic, "id:SECRET");
	answer_sts("t");
}

static void with_an_impersonation_url_the_accounts_token_is_the_source(void **state)
{
	struct credential_info info;

	(void)state;
	source_write("subject", 0600, "s");
	open_text("{" COMMON "," FILE_SOURCE "," IMPERSONATION
		  ",\"service_account_impersonation\":{\"token_lifetime_seconds\":1800}}");
	credential_info(source.credential, &info);
	assert_string_equal(info.type, "external_account");
	assert_string_equal(info.principal, "bastion@p.iam.gserviceaccount.com");
	source_ask();
	answer_sts("federated");
	assert_string_equal(fake_http_request()->url,
			    "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/"
			    "bastion@p.iam.gserviceaccount.com:generateAccessToken");
	assert_string_equal(fake_http_request()->bearer, "federated");
	assert_string_equal(fake_http_request()->body,
			    "{\"scope\":[\"https://www.googleapis.com/auth/iam\"],"
			    "\"lifetime\":\"1800s\"}");
	fake_http_answer(200,
			 "{\"accessToken\":\"bastion-token\",\"expireTime\":"
			 "\"2026-11-29T10:30:00Z\"}",
			 FAKE_WALL_S);
	source_has_token("bastion-token");
	credential_info(source.credential, &info);
	assert_int_equal(info.token_expires_wall_ms, (FAKE_WALL_S + 1800) * 1000);
}

/* google-github-actions/auth#455: a good exchange, and then no permission on the account. */
static void a_pool_without_the_role_is_told_which_one_it_lacks(void **state)
{
	(void)state;
	source_write("subject", 0600, "s");
	open_text("{" COMMON "," FILE_SOURCE "," IMPERSONATION "}");
	source_ask();
	answer_sts("federated");
	fake_http_answer(403,
			 "{\"error\":{\"code\":403,\"details\":[{\"@type\":\"type.googleapis.com/"
			 "google.rpc.ErrorInfo\",\"reason\":\"IAM_PERMISSION_DENIED\",\"metadata\":"
			 "{\"permission\":\"iam.serviceAccounts.getAccessToken\"}}]}}",
			 FAKE_WALL_S);
	source_has_failed(FAILURE_PERMANENT, "IAM_PERMISSION_DENIED",
			  "roles/iam.workloadIdentityUser");
	assert_string_equal(failure_step_name(source.failure.step), "impersonate");
	assert_string_equal(source.failure.permission, "iam.serviceAccounts.getAccessToken");
}

static void a_call_that_nobody_waits_for_ends_with_the_source(void **state)
{
	(void)state;
	source_write("subject", 0600, "s");
	for (int turns = 0; turns < 2; turns++) {
		open_text("{" COMMON "," FILE_SOURCE "," IMPERSONATION "}");
		source.call = credential_get_token(source.credential, source_result, &source);
		if (turns)
			timer_queue_run(&source.timers);
		credential_call_cancel(source.call);
		credential_free(source.credential);
		source.credential = NULL;
		assert_int_equal(fake_http.count, 0);
	}
}

static void other_kinds_of_sources_are_refused_by_name(void **state)
{
	static const struct {
		const char *source;
		const char *what;
		const char *repair;
	} cases[] = {
		{"{\"environment_id\":\"aws1\",\"region_url\":\"http://169.254.169.254/x\",\"url\":"
		 "\"http://169.254.169.254/y\",\"regional_cred_verification_url\":\"z\"}",
		 "field \"credential_source\" is of kind aws", "use file, url or executable"},
		{"{\"certificate\":{\"use_default_certificate_config\":true}}",
		 "field \"credential_source\" is of kind certificate",
		 "use file, url or executable"},
		{"{\"file\":\"/a\",\"url\":\"https://tokens.example.com/t\"}",
		 "names several sources", "exactly one of file, url and executable"},
		{"{\"file\":\"/a\",\"certificate\":{}}", "names several sources", "exactly one"},
		{"{\"environment_id\":\"aws1\",\"file\":\"/a\"}", "names several sources",
		 "exactly one"},
		{"{}", "names no source", CREATE},
		{"\"/a\"", "field \"credential_source\" is missing or no object", CREATE},
		{"{\"file\":\"\"}", "field \"credential_source.file\" is missing, empty", "file"},
		{"{\"file\":7}", "field \"credential_source.file\" is missing, empty", "file"},
		{"{\"file\":\"token\"}", "field \"credential_source.file\" is no absolute path",
		 "folders"},
		{"{\"file\":\"/a\",\"format\":{\"type\":\"xml\"}}",
		 "field \"credential_source.format.type\" is \"xml\"", "text or json"},
		{"{\"file\":\"/a\",\"format\":\"json\"}",
		 "field \"credential_source.format.type\" is \"\"", "text or json"},
		{"{\"file\":\"/a\",\"format\":{\"type\":\"json\"}}",
		 "field \"credential_source.format.subject_token_field_name\" is missing", CREATE},
		{"{\"url\":\"https://tokens.example.com/t\",\"headers\":[]}",
		 "field \"credential_source.headers\" must be an object", "strings"},
		{"{\"url\":\"https://tokens.example.com/t\",\"headers\":{\"a b\":\"SECRET\"}}",
		 "field \"credential_source.headers\" holds \"a b\"", "one line"},
		{"{\"url\":\"https://tokens.example.com/t\",\"headers\":{\"A\":\"SECRET\\r\\nB: c\"}}",
		 "field \"credential_source.headers\" holds \"A\"", "one line"},
		{"{\"url\":\"https://tokens.example.com/t\",\"headers\":{\"A\":7}}",
		 "field \"credential_source.headers\" holds \"A\"", "string"},
		{"{\"executable\":{\"command\":\"/bin/true\"}}",
		 "field \"credential_source.executable\" asks to run a program",
		 "GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES=1"},
	};
	char text[1024];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		(void)snprintf(text, sizeof(text), "{" COMMON ",\"credential_source\":%s}",
			       cases[i].source);
		source_refused_file(text, cases[i].what, cases[i].repair);
	}
}

static void a_field_that_is_wrong_is_named(void **state)
{
	static const struct {
		const char *text;
		const char *what;
		const char *repair;
	} cases[] = {
		{"{" TYPE "," SUBJECT_TYPE "," TOKEN_URL "," FILE_SOURCE "}",
		 "field \"audience\" is missing", CREATE},
		{"{" TYPE ",\"audience\":\"a\"," TOKEN_URL "," FILE_SOURCE "}",
		 "field \"subject_token_type\" is missing", CREATE},
		{"{" TYPE ",\"audience\":\"a\"," SUBJECT_TYPE "," FILE_SOURCE "}",
		 "field \"token_url\" is missing", CREATE},
		{"{" COMMON "}", "field \"credential_source\" is missing", CREATE},
		{"{" COMMON "," FILE_SOURCE ",\"client_id\":\"id\"}",
		 "field \"client_secret\" is missing", CREATE},
		{"{" COMMON "," FILE_SOURCE ",\"client_secret\":\"SECRET\"}",
		 "field \"client_id\" is missing", CREATE},
		{"{" COMMON "," FILE_SOURCE ",\"workforce_pool_user_project\":\"p\"}",
		 "field \"workforce_pool_user_project\" goes with", "remove it"},
		{"{" TYPE ",\"audience\":\"" WORKFORCE "\"," SUBJECT_TYPE "," TOKEN_URL
		 "," FILE_SOURCE ",\"workforce_pool_user_project\":\"a b\"}",
		 "field \"workforce_pool_user_project\" is \"a b\"", "project's id"},
		{"{" COMMON "," FILE_SOURCE "," IMPERSONATION
		 ",\"service_account_impersonation\":{\"token_lifetime_seconds\":60}}",
		 "field \"service_account_impersonation.token_lifetime_seconds\"",
		 "from 600 to 43200"},
		{"{" COMMON "," FILE_SOURCE ",\"service_account_impersonation_url\":"
		 "\"https://iamcredentials.googleapis.com/v1/x:signBlob\"}",
		 "field \"service_account_impersonation_url\" is ", "generateAccessToken"},
		{"{" TYPE ",\"audience\":\"a\"," SUBJECT_TYPE
		 ",\"token_url\":\"https://evil.example/v1/token\"," FILE_SOURCE "}",
		 "field \"token_url\" is \"https://evil.example", "get the file again"},
		{"{" COMMON "," FILE_SOURCE ",\"token_info_url\":\"https://evil.example/\"}",
		 "field \"token_info_url\" is ", "get the file again"},
		{"{" COMMON "," FILE_SOURCE ",\"universe_domain\":\"other.example\"}",
		 "field \"universe_domain\" is \"other.example\"", "universe_domain under"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		refused(cases[i].text, cases[i].what, cases[i].repair);
}

static void a_file_that_holds_a_secret_is_not_for_everybody(void **state)
{
	(void)state;
	AUTO_FREE char *plain = source_expand("{" COMMON "," FILE_SOURCE "}");
	source_write("source.json", 0644, plain);
	source_open();
	AUTO_FREE char *client = source_expand(
		"{" COMMON "," FILE_SOURCE ",\"client_id\":\"i\",\"client_secret\":\"SECRET\"}");
	source_write("source.json", 0644, client);
	source_refused(source.path, "chmod o-r");
	source_write("source.json", 0644,
		     "{" COMMON ",\"credential_source\":{\"url\":\"https://tokens.example.com/\","
		     "\"headers\":{\"A\":\"SECRET\"}}}");
	source_refused(source.path, "chmod o-r");
}

static void a_token_url_may_be_the_configured_endpoint_of_its_kind(void **state)
{
	static const char text[] = "{" TYPE ",\"audience\":\"" AUDIENCE "\"," SUBJECT_TYPE
				   ",\"token_url\":\"https://127.0.0.1:4711/v1/token\"," FILE_SOURCE
				   "}";

	(void)state;
	source.options.oauth2_endpoint = "https://127.0.0.1:4711";
	refused(text, "field \"token_url\" is ", "get the file again");
	source.options.sts_endpoint = "https://127.0.0.1:4711";
	open_text(text);
	source_write("subject", 0600, "s");
	source_ask();
	assert_string_equal(fake_http_request()->url, "https://127.0.0.1:4711/v1/token");
	fake_http_fail(HTTP_FAILURE_CONNECT);
}

static void the_call_goes_to_the_configured_endpoint_whatever_the_file_says(void **state)
{
	(void)state;
	source.options.sts_endpoint = "https://127.0.0.1:4711";
	open_text("{" COMMON "," FILE_SOURCE "}");
	source_write("subject", 0600, "s");
	source_ask();
	assert_string_equal(fake_http_request()->url, "https://127.0.0.1:4711/v1/token");
	fake_http_fail(HTTP_FAILURE_CONNECT);
}

static void other_endpoints_make_another_source_of_the_same_file(void **state)
{
	struct credential *other = NULL;
	struct err err;

	(void)state;
	open_text("{" COMMON "," FILE_SOURCE "," IMPERSONATION "}");
	assert_int_equal(credential_open(&source.options, &other, &err), 0);
	assert_true(credential_equal(source.credential, other));
	credential_free(other);
	source.options.sts_endpoint = "https://127.0.0.1:4711";
	assert_int_equal(credential_open(&source.options, &other, &err), 0);
	assert_false(credential_equal(source.credential, other));
	credential_free(other);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(a_file_is_read_anew_at_every_refresh_and_trimmed),
		CASE(a_field_of_a_json_file_is_the_token),
		CASE(a_file_without_a_token_fails_for_now),
		CASE(a_subject_token_has_a_cap),
		CASE(a_url_is_asked_with_the_headers_of_the_file),
		CASE(an_answer_of_the_url_that_is_not_200_fails),
		CASE(a_url_of_a_host_that_is_not_listed_is_refused),
		CASE(plain_http_is_for_loopback_with_the_key_only),
		CASE(a_workforce_pool_names_its_project_unless_there_is_a_client),
		CASE(with_an_impersonation_url_the_accounts_token_is_the_source),
		CASE(a_pool_without_the_role_is_told_which_one_it_lacks),
		CASE(a_call_that_nobody_waits_for_ends_with_the_source),
		CASE(other_kinds_of_sources_are_refused_by_name),
		CASE(a_field_that_is_wrong_is_named),
		CASE(a_file_that_holds_a_secret_is_not_for_everybody),
		CASE(a_token_url_may_be_the_configured_endpoint_of_its_kind),
		CASE(the_call_goes_to_the_configured_endpoint_whatever_the_file_says),
		CASE(other_endpoints_make_another_source_of_the_same_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
