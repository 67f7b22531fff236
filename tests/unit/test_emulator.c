/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every route, by every spelling, with every method, flavor and query, byte for byte.
 */
#include "emulator/emulator.h"

#include "broker/base/alloc.h"
#include "broker/base/compiler.h"
#include "broker/base/strv.h"
#include "tests/unit/emulator_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct flavor_case {
	const char *name; /* NULL: no such header */
	const char *value;
	const char *second; /* the value of a second header of that name, if any */
	bool right;
};

static const struct flavor_case flavors[] = {
	{NULL, NULL, NULL, false},
	{"Metadata-Flavor", "Google", NULL, true},
	{"metadata-flavor", "Google", NULL, true},
	{"mEtAdAtA-fLaVoR", "Google", NULL, true},
	{"METADATA-FLAVOR", "Google", NULL, true},
	{"Metadata-Flavor", " \t Google", NULL, true},
	{"Metadata-Flavor", "Google \t", NULL, true},
	{"Metadata-Flavor", "", NULL, false},
	{"Metadata-Flavor", "  ", NULL, false},
	{"Metadata-Flavor", "google", NULL, false},
	{"Metadata-Flavor", "GOOGLE", NULL, false},
	{"Metadata-Flavor", "Amazon", NULL, false},
	{"Metadata-Flavor", "Googl", NULL, false},
	{"Metadata-Flavor", "Googlee", NULL, false},
	{"Metadata-Flavor", "Google, Google", NULL, false},
	{"Metadata-Flavor", "Google,", NULL, false},
	{"Metadata-Flavor", "\"Google\"", NULL, false},
	{"Metadata-Flavor", "Google\r", NULL, false},
	{"Metadata-Flavor", "\vGoogle", NULL, false},
	{"Metadata-Flavor", "Goo gle", NULL, false},
	{"Metadata-Flavor", "Google", "Google", false},
	{"Metadata-Flavor", "Google", "", false},
	{"Metadata-Flavor", "google", "Google", false},
	{"Metadata_Flavor", "Google", NULL, false},
	{"Metadata-Flavor ", "Google", NULL, false},
	{"Metadata-Flavo", "Google", NULL, false},
	/* The old header, which the real server has given up (jenkinsci/google-oauth-plugin#91). */
	{"X-Google-Metadata-Request", "True", NULL, false},
};

static const struct {
	const char *method;
	bool right;
} methods[] = {
	{"GET", true},	    {"HEAD", true},	 {"POST", false},    {"PUT", false},
	{"DELETE", false},  {"PATCH", false},	 {"OPTIONS", false}, {"TRACE", false},
	{"CONNECT", false}, {"PROPFIND", false}, {"get", false},     {"Head", false},
	{"GET ", false},    {"GETT", false},	 {"GE", false},	     {"", false},
	{"HEAD\t", false},
};

#define SCOPE_ENCODED "https%3A%2F%2Fwww.googleapis.com%2Fauth%2F"

static const struct {
	const char *query;
	bool recursive;
	bool json;
} queries[] = {
	{"", false, false},
	{"?", false, false},
	{"?recursive=true", true, false},
	{"?recursive=True", true, false},
	{"?recursive=TRUE", true, false},
	{"?recursive=tRuE", true, false},
	{"?recursive=1", false, false},
	{"?recursive=yes", false, false},
	{"?recursive=false", false, false},
	{"?recursive=", false, false},
	{"?recursive", false, false},
	{"?recursive=truee", false, false},
	{"?recursive=tru", false, false},
	{"?recursive=true?", false, false},
	{"?recursive=%74rue", false, false},
	{"?recursive=true%20", false, false},
	{"?%72ecursive=true", false, false},
	/* Whole, as the test list of k8s-metadata-proxy has it. */
	{"?%72%65%63%75%72%73%69%76%65=true", false, false},
	{"?Recursive=true", false, false},
	{"?xrecursive=true", false, false},
	{"?recursive.=true", false, false},
	{"??recursive=true", false, false},
	{"?a=1;recursive=true", false, false},
	{"?recursive=true;a=1", false, false},
	{"?&&recursive=true&&", true, false},
	{"?a=1&recursive=true", true, false},
	{"?recursive=true&a=1", true, false},
	{"?recursive=false&recursive=true", true, false},
	{"?recursive=true&recursive=false", true, false},
	{"?alt=json", false, true},
	{"?alt=text", false, false},
	{"?alt=JSON", false, false},
	{"?alt=jso", false, false},
	{"?alt=jsonp", false, false},
	{"?alt", false, false},
	{"?Alt=json", false, false},
	{"?%61lt=json", false, false},
	{"?alt=%6ason", false, false},
	{"?alt=text&alt=json", false, true},
	{"?alt=json&recursive=true", true, true},
	{"?recursive=TRUE&alt=json", true, true},
	{"?alt=text&recursive=true", true, false},
	{"?scopes=a,b", false, false},
	{"?scopes=" SCOPE_ENCODED "cloud-platform", false, false},
	/* Of 300 bytes and more, as Config Connector sends it (k8s-config-connector#247). */
	{"?scopes=" SCOPE_ENCODED "cloud-platform," SCOPE_ENCODED "userinfo.email," SCOPE_ENCODED
	 "compute," SCOPE_ENCODED "ndev.clouddns.readwrite," SCOPE_ENCODED
	 "devstorage.full_control," SCOPE_ENCODED "cloud-identity",
	 false, false},
	{"?wait_for_change=true&timeout_sec=60&last_etag=0", false, false},
	{"?audience=https://example.com&format=full", false, false},
	{"?bindCertificateFingerprint=0a1b", false, false},
	{"?binding-enforcement=off&transport=mtls", false, false},
	{"?unknown=1", false, false},
	{"?=&=&&===", false, false},
	{"?/../..//%2f%00%%", false, false},
};

/* One target and method; the flavors are all tried on it. */
struct attempt {
	const struct emulator *emulator;
	const struct expected_route *expected;
	bool json; /* whether the query asks for the JSON of this kind of route */
	bool method_right;
	struct emulator_request request;
	const char *what;
};

static void check_right_flavor(const struct attempt *attempt, bool whole,
			       const struct emulator_reply *reply)
{
	const struct expected_route *const expected = attempt->expected;

	assert_int_equal(reply->route, expected->route);
	if (!attempt->method_right) {
		assert_true(whole);
		expect_refusal(reply, EMULATOR_REFUSAL_METHOD, attempt->what);
	} else if (!expected->text) {
		assert_false(whole);
		assert_int_equal(reply->status, 0);
		assert_null(reply->body);
	} else {
		assert_true(whole);
		expect_content(reply, expected->route,
			       attempt->json ? "application/json" : "application/text",
			       attempt->json ? expected->json : expected->text, attempt->what);
	}
}

static void check_flavors(struct attempt *attempt)
{
	for (size_t f = 0; f < ARRAY_LEN(flavors); f++) {
		struct emulator_header headers[3] = {fixture_header("host", FIXTURE_HOST)};
		struct emulator_reply reply;
		size_t count = 1;

		if (flavors[f].name)
			headers[count++] = fixture_header(flavors[f].name, flavors[f].value);
		if (flavors[f].second)
			headers[count++] = fixture_header(flavors[f].name, flavors[f].second);
		attempt->request.headers = headers;
		attempt->request.header_count = count;
		const bool whole = emulator_answer(attempt->emulator, &attempt->request, &reply);
		if (flavors[f].right) {
			check_right_flavor(attempt, whole, &reply);
			continue;
		}
		assert_true(whole);
		expect_refusal(&reply, EMULATOR_REFUSAL_FLAVOR, attempt->what);
	}
}

static void check_methods(const struct emulator *emulator, const struct spelling *spelling,
			  size_t query)
{
	char target[1024];
	char what[1100];

	const int len =
		snprintf(target, sizeof(target), "%s%s", spelling->path, queries[query].query);
	assert_in_range(len, 1, sizeof(target) - 1);
	for (size_t m = 0; m < ARRAY_LEN(methods); m++) {
		struct attempt attempt = {
			.emulator = emulator,
			.expected = spelling->expected,
			.json = expected_is_directory(spelling->expected) ?
					queries[query].recursive :
					queries[query].json,
			.method_right = methods[m].right,
			.request = fixture_request(methods[m].method, target, (size_t)len),
			.what = what,
		};
		(void)snprintf(what, sizeof(what), "%s %s", methods[m].method, target);
		check_flavors(&attempt);
	}
}

static void check_profile(const struct profile *profile)
{
	struct emulator *const emulator = emulator_new(profile->identity);
	struct spelling spellings[SPELLINGS_MAX];

	const size_t count = fixture_spellings(profile, spellings);
	for (size_t s = 0; s < count; s++)
		for (size_t q = 0; q < ARRAY_LEN(queries); q++)
			check_methods(emulator, &spellings[s], q);
	emulator_free(emulator);
}

static void every_route_of_a_profile_with_a_number_answers_as_the_contract_says(void **state)
{
	(void)state;
	check_profile(&profiles[PROFILE_NUMBERED]);
}

static void every_route_of_a_profile_without_a_number_answers_as_the_contract_says(void **state)
{
	(void)state;
	check_profile(&profiles[PROFILE_PLAIN]);
}

static struct emulator_reply get(const struct emulator *emulator, const char *target)
{
	const struct emulator_request request = fixture_request("GET", target, strlen(target));
	struct emulator_reply reply;

	(void)emulator_answer(emulator, &request, &reply);
	return reply;
}

static void a_project_number_is_served_only_where_it_is_configured(void **state)
{
	static const char target[] = "/computeMetadata/v1/project/numeric-project-id";
	struct emulator *const emulator = emulator_new(profiles[PROFILE_PLAIN].identity);
	const struct emulator_request post = fixture_request("POST", target, sizeof(target) - 1);
	struct emulator_reply reply = get(emulator, target);

	(void)state;
	expect_refusal(&reply, EMULATOR_REFUSAL_PATH, target);
	assert_true(emulator_answer(emulator, &post, &reply));
	expect_refusal(&reply, EMULATOR_REFUSAL_PATH, target);
	emulator_free(emulator);
}

static void a_project_number_that_is_no_number_is_not_served(void **state)
{
	static const char *const wrong[] = {"",	   "0",	 "my-project",
					    "12 ", "-1", "99999999999999999999"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct emulator_identity identity = *profiles[PROFILE_PLAIN].identity;
		identity.project_number = wrong[i];
		struct emulator *const emulator = emulator_new(&identity);
		struct emulator_reply reply =
			get(emulator, "/computeMetadata/v1/project/numeric-project-id");
		expect_refusal(&reply, EMULATOR_REFUSAL_PATH, wrong[i]);
		reply = get(emulator, "/computeMetadata/v1/project/");
		expect_content(&reply, EMULATOR_ROUTE_DIRECTORY, "application/text", "project-id\n",
			       wrong[i]);
		emulator_free(emulator);
	}
}

static void the_identity_is_copied(void **state)
{
	AUTO_FREE char *email = xstrdup("a@b.example");
	AUTO_FREE char *project = xstrdup("p-1");
	AUTO_FREE char *host = xstrdup("gateway.example");
	struct strv scopes = {0};

	(void)state;
	strv_add(&scopes, "one", 3);
	struct emulator *const emulator = emulator_new(&(struct emulator_identity){
		.email = email,
		.project = project,
		.universe_domain = "u.example",
		.scopes = &scopes,
		.advertised_host = host,
	});
	strv_deinit(&scopes);
	email[0] = 'X';
	project[0] = 'X';
	host[0] = 'X';
	struct emulator_reply reply =
		get(emulator,
		    "/computeMetadata/v1/instance/service-accounts/a@b.example/?recursive=true");
	expect_content(&reply, EMULATOR_ROUTE_ACCOUNT, "application/json",
		       "{\"aliases\":[\"default\"],\"email\":\"a@b.example\",\"scopes\":[\"one\"]}",
		       "account");
	reply = get(emulator, "/computeMetadata/v1/project/project-id");
	expect_content(&reply, EMULATOR_ROUTE_PROJECT_ID, "application/text", "p-1", "project");

	const struct emulator_header headers[] = {
		fixture_header("Host", "gateway.example:80"),
		fixture_header("Metadata-Flavor", "Google"),
	};
	struct emulator_request request = fixture_request("GET", "/", 1);
	request.headers = headers;
	request.header_count = ARRAY_LEN(headers);
	assert_true(emulator_answer(emulator, &request, &reply));
	assert_int_equal(reply.status, 200);
	emulator_free(emulator);
}

/* The same bytes at the same place: they were made before. */
static void answering_makes_nothing_new(void **state)
{
	struct emulator *const emulator = emulator_new(profiles[PROFILE_NUMBERED].identity);

	(void)state;
	const struct emulator_reply first = get(emulator, "/?recursive=true");
	const struct emulator_reply second = get(emulator, "/?a&recursive=TRUE");
	assert_ptr_equal(first.body, second.body);
	emulator_free(emulator);
}

static void the_common_headers_are_those_of_the_real_server(void **state)
{
	static const char *const expected[] = {
		"Metadata-Flavor",  "Google", "Server",		 "Metadata Server for VM",
		"X-XSS-Protection", "0",      "X-Frame-Options", "SAMEORIGIN",
	};
	const char *const *const headers = emulator_common_headers();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(expected); i++)
		assert_string_equal(headers[i], expected[i]);
	assert_null(headers[ARRAY_LEN(expected)]);
}

static void every_route_and_refusal_has_a_name_of_its_own(void **state)
{
	(void)state;
	for (int i = 0; i < EMULATOR_ROUTE_COUNT; i++)
		for (int k = 0; k < i; k++)
			assert_string_not_equal(emulator_route_name((enum emulator_route)i),
						emulator_route_name((enum emulator_route)k));
	for (int i = 0; i < EMULATOR_REFUSAL_COUNT; i++)
		for (int k = 0; k < i; k++)
			assert_string_not_equal(emulator_refusal_name((enum emulator_refusal)i),
						emulator_refusal_name((enum emulator_refusal)k));
}

static void freeing_nothing_is_fine(void **state)
{
	(void)state;
	emulator_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			every_route_of_a_profile_with_a_number_answers_as_the_contract_says),
		cmocka_unit_test(
			every_route_of_a_profile_without_a_number_answers_as_the_contract_says),
		cmocka_unit_test(a_project_number_is_served_only_where_it_is_configured),
		cmocka_unit_test(a_project_number_that_is_no_number_is_not_served),
		cmocka_unit_test(the_identity_is_copied),
		cmocka_unit_test(answering_makes_nothing_new),
		cmocka_unit_test(the_common_headers_are_those_of_the_real_server),
		cmocka_unit_test(every_route_and_refusal_has_a_name_of_its_own),
		cmocka_unit_test(freeing_nothing_is_fine),
	};

	return cmocka_run_group_tests_name("emulator", tests, NULL, NULL);
}
