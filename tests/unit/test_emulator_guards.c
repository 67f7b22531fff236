/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is refused before the path is looked at, and in which order.
 */
#include "emulator/emulator.h"

#include "broker/base/compiler.h"
#include "tests/unit/emulator_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static int set_up(void **state)
{
	*state = emulator_new(profiles[PROFILE_NUMBERED].identity);
	return 0;
}

static int tear_down(void **state)
{
	emulator_free(*state);
	return 0;
}

/* A request with every fault of the set, each bit of which is a refusal. */
static struct emulator_reply answer_faults(const struct emulator *emulator, unsigned faults)
{
	const bool bad_path = faults & 1U << EMULATOR_REFUSAL_PATH;
	const bool bad_host = faults & 1U << EMULATOR_REFUSAL_HOST;
	const bool bad_flavor = faults & 1U << EMULATOR_REFUSAL_FLAVOR;
	const char *const target = bad_path ? "/computeMetadata/v1/instance/id" :
					      "/computeMetadata/v1/instance/";
	const bool forwarded = faults & 1U << EMULATOR_REFUSAL_FORWARDED;
	const struct emulator_header headers[] = {
		fixture_header("Host", bad_host ? "evil.example" : FIXTURE_HOST),
		fixture_header("Metadata-Flavor", bad_flavor ? "google" : "Google"),
		fixture_header(forwarded ? "X-Forwarded-For" : "X-Forwarded-Proto", "a"),
	};
	struct emulator_request request = fixture_request("GET", target, strlen(target));
	struct emulator_reply reply;

	request.headers = headers;
	request.header_count = ARRAY_LEN(headers);
	if (faults & 1U << EMULATOR_REFUSAL_METHOD)
		request.method = "POST";
	request.malformed = faults & 1U << EMULATOR_REFUSAL_MALFORMED;
	request.has_body = faults & 1U << EMULATOR_REFUSAL_BODY;
	request.peer_refused = faults & 1U << EMULATOR_REFUSAL_PEER;
	assert_true(emulator_answer(emulator, &request, &reply));
	return reply;
}

/* The order of checks of the contract; the values of the enum are not what is tested. */
static const enum emulator_refusal order[] = {
	EMULATOR_REFUSAL_MALFORMED, EMULATOR_REFUSAL_BODY,   EMULATOR_REFUSAL_PEER,
	EMULATOR_REFUSAL_FORWARDED, EMULATOR_REFUSAL_HOST,   EMULATOR_REFUSAL_FLAVOR,
	EMULATOR_REFUSAL_PATH,	    EMULATOR_REFUSAL_METHOD,
};

static void of_any_two_faults_the_earlier_check_refuses(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		for (size_t k = i; k < ARRAY_LEN(order); k++) {
			char what[64];
			(void)snprintf(what, sizeof(what), "faults %s and %s",
				       emulator_refusal_name(order[i]),
				       emulator_refusal_name(order[k]));
			const struct emulator_reply reply =
				answer_faults(*state, 1U << order[i] | 1U << order[k]);
			expect_refusal(&reply, order[i], what);
		}
	}
}

static void of_any_set_of_faults_the_earliest_check_refuses(void **state)
{
	for (unsigned set = 1; set < 1U << ARRAY_LEN(order); set++) {
		unsigned faults = 0;
		for (size_t i = 0; i < ARRAY_LEN(order); i++)
			if (set & 1U << i)
				faults |= 1U << order[i];
		const struct emulator_reply reply = answer_faults(*state, faults);
		expect_refusal(&reply, order[__builtin_ctz(set)], "a set of faults");
	}
}

static void a_request_without_fault_is_answered(void **state)
{
	const struct emulator_reply reply = answer_faults(*state, 0);

	expect_content(&reply, EMULATOR_ROUTE_DIRECTORY, "application/text", "service-accounts/\n",
		       "no fault");
}

static struct emulator_reply answer_with(const struct emulator *emulator,
					 struct emulator_header header)
{
	const struct emulator_header headers[] = {
		fixture_header("Host", FIXTURE_HOST),
		header,
		fixture_header("Metadata-Flavor", "Google"),
	};
	struct emulator_request request = fixture_request("GET", "/", 1);
	struct emulator_reply reply;

	request.headers = headers;
	request.header_count = ARRAY_LEN(headers);
	assert_true(emulator_answer(emulator, &request, &reply));
	return reply;
}

static void x_forwarded_for_is_refused_in_any_case_and_with_any_value(void **state)
{
	static const char *const names[] = {"X-Forwarded-For", "x-forwarded-for", "X-FORWARDED-FOR",
					    "x-fOrWaRdEd-FoR"};
	static const char *const values[] = {"", " ", "10.0.0.1", "127.0.0.1, 10.0.0.1", "unknown"};

	for (size_t n = 0; n < ARRAY_LEN(names); n++) {
		for (size_t v = 0; v < ARRAY_LEN(values); v++) {
			const struct emulator_reply reply =
				answer_with(*state, fixture_header(names[n], values[v]));
			expect_refusal(&reply, EMULATOR_REFUSAL_FORWARDED, names[n]);
		}
	}
}

static void x_forwarded_for_without_a_value_pointer_is_refused(void **state)
{
	const struct emulator_reply reply =
		answer_with(*state,
			    (struct emulator_header){.name = "X-Forwarded-For", .name_len = 15});

	expect_refusal(&reply, EMULATOR_REFUSAL_FORWARDED, "no value");
}

static void other_headers_change_nothing(void **state)
{
	static const struct {
		const char *name;
		const char *value;
	} headers[] = {
		{"X-Forwarded-Fo", "10.0.0.1"},
		{"X-Forwarded-Fore", "10.0.0.1"},
		{"X_Forwarded_For", "10.0.0.1"},
		{"X-Forwarded-Host", "evil.example"},
		{"X-Forwarded-Proto", "https"},
		{"Forwarded", "for=10.0.0.1"},
		{"X-Real-IP", "10.0.0.1"},
		{"X-Host", "evil.example"},
		{"Hos", "evil.example"},
		{"Hosts", "evil.example"},
		{"X-HTTP-Method-Override", "POST"},
		{"X-Original-URL", "/computeMetadata/v1/instance/id"},
		{"X-Google-Metadata-Request", "True"},
		{"Range", "bytes=0-1"},
		{"If-None-Match", "*"},
		{"Accept", "text/html"},
		{"Accept-Encoding", "gzip"},
		{"Origin", "http://evil.example"},
		/* gl-python's telemetry, which grows. */
		{"x-goog-api-client",
		 "gl-python/3.12.10 auth/2.48.0 auth-request-type/at cred-type/mds"},
		{"", ""},
	};

	for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
		const struct emulator_reply reply =
			answer_with(*state, fixture_header(headers[i].name, headers[i].value));
		expect_content(&reply, EMULATOR_ROUTE_DIRECTORY, "application/text",
			       "computeMetadata/\n", headers[i].name);
	}
}

static void a_nul_in_a_header_is_a_byte_like_any_other(void **state)
{
	static const struct {
		struct emulator_header header;
		enum emulator_refusal refusal;
	} cases[] = {
		{{"Host", 4, FIXTURE_HOST "\0", sizeof(FIXTURE_HOST)}, EMULATOR_REFUSAL_HOST},
		{{"Host", 4, "172.17.0.1\0.evil.example", 24}, EMULATOR_REFUSAL_HOST},
		{{"Host", 4, "localhost\0", 10}, EMULATOR_REFUSAL_HOST},
		{{"Host\0", 5, FIXTURE_HOST, sizeof(FIXTURE_HOST) - 1}, EMULATOR_REFUSAL_HOST},
		{{"Metadata-Flavor", 15, "Google\0", 7}, EMULATOR_REFUSAL_FLAVOR},
		{{"Metadata-Flavor\0", 16, "Google", 6}, EMULATOR_REFUSAL_FLAVOR},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct emulator_header headers[] = {
			cases[i].header,
			cases[i].refusal == EMULATOR_REFUSAL_HOST ?
				fixture_header("Metadata-Flavor", "Google") :
				fixture_header("Host", FIXTURE_HOST),
		};
		struct emulator_request request = fixture_request("GET", "/", 1);
		struct emulator_reply reply;
		request.headers = headers;
		request.header_count = ARRAY_LEN(headers);
		assert_true(emulator_answer(*state, &request, &reply));
		expect_refusal(&reply, cases[i].refusal, cases[i].header.name);
	}
}

static void a_request_without_headers_is_refused_for_its_host(void **state)
{
	struct emulator_request request = fixture_request("GET", "/", 1);
	struct emulator_reply reply;

	request.headers = NULL;
	request.header_count = 0;
	assert_true(emulator_answer(*state, &request, &reply));
	expect_refusal(&reply, EMULATOR_REFUSAL_HOST, "no headers");
}

/* Of GoogleCloudPlatform/k8s-metadata-proxy and of every client: the header is wanted on "/" too. */
static void the_root_wants_the_flavor_as_well(void **state)
{
	const struct emulator_header host = fixture_header("Host", FIXTURE_HOST);
	struct emulator_request request = fixture_request("GET", "/", 1);
	struct emulator_reply reply;

	request.headers = &host;
	request.header_count = 1;
	assert_true(emulator_answer(*state, &request, &reply));
	expect_refusal(&reply, EMULATOR_REFUSAL_FLAVOR, "/");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_any_two_faults_the_earlier_check_refuses),
		cmocka_unit_test(of_any_set_of_faults_the_earliest_check_refuses),
		cmocka_unit_test(a_request_without_fault_is_answered),
		cmocka_unit_test(x_forwarded_for_is_refused_in_any_case_and_with_any_value),
		cmocka_unit_test(x_forwarded_for_without_a_value_pointer_is_refused),
		cmocka_unit_test(other_headers_change_nothing),
		cmocka_unit_test(a_nul_in_a_header_is_a_byte_like_any_other),
		cmocka_unit_test(a_request_without_headers_is_refused_for_its_host),
		cmocka_unit_test(the_root_wants_the_flavor_as_well),
	};

	return cmocka_run_group_tests_name("emulator guards", tests, set_up, tear_down);
}
