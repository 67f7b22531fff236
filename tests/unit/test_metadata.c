/* SPDX-License-Identifier: Apache-2.0 */
/* The service account of the machine itself, by its metadata server. */
#include "broker/net/address.h"
#include "broker/net/origin.h"
#include "tests/unit/source_fixture.h"

#define BASE "http://169.254.169.254/computeMetadata/v1/"
#define EMAIL "vm@p.iam.gserviceaccount.com"
#define TOKEN(token, expires_in) \
	"{\"access_token\":\"" token "\",\"expires_in\":" expires_in ",\"token_type\":\"Bearer\"}"

static struct address ours;
static bool everything_is_ours;

static bool is_ours(const void *ctx, const struct address *address)
{
	assert_ptr_equal(ctx, &ours);
	return everything_is_ours ||
	       (address_same_ip(&ours, address) && address_port(&ours) == address_port(address));
}

static const char *our_name;
static uint16_t our_port;

static bool is_our_name(const void *ctx, const char *name, uint16_t port)
{
	assert_ptr_equal(ctx, &ours);
	return our_name && !strcmp(name, our_name) && port == our_port;
}

static int set_up(void **state)
{
	(void)state;
	source_set_up();
	ours = (struct address){0};
	everything_is_ours = false;
	our_name = NULL;
	source.options.type = "metadata";
	source.options.file = NULL;
	source.options.is_ours = is_ours;
	source.options.is_our_name = is_our_name;
	source.options.is_ours_ctx = &ours;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	source_tear_down();
	return 0;
}

static void asked_for(const char *path)
{
	char url[160];

	(void)snprintf(url, sizeof(url), BASE "%s", path);
	assert_string_equal(fake_http_request()->url, url);
	assert_string_equal(fake_http_request()->method, "GET");
	assert_string_equal(fake_http_request()->fields, "Metadata-Flavor: Google\n");
	assert_string_equal(fake_http_request()->answer_field, "Metadata-Flavor");
	assert_null(fake_http_request()->bearer);
}

/* The questions before the token's, once. */
static void answer_first(void)
{
	asked_for("universe/universe-domain");
	fake_http_answer_with(200, "googleapis.com", "Google");
	asked_for("instance/service-accounts/default/email");
	fake_http_answer_with(200, EMAIL "\n", "Google");
}

static void the_machines_own_token_is_taken(void **state)
{
	struct credential_info info;

	(void)state;
	source_open();
	assert_int_equal(fake_http.started, 0);
	source_ask();
	answer_first();
	asked_for("instance/service-accounts/default/token");
	fake_http_answer_with(200, TOKEN("vm-1", "3599"), "Google");
	source_has_token("vm-1");
	credential_info(source.credential, &info);
	assert_string_equal(info.type, "metadata");
	assert_string_equal(info.principal, EMAIL);
	assert_int_equal(info.token_expires_wall_ms, (FAKE_WALL_S + 3599) * 1000);
	/* The next time it is one question. */
	fake_clock_advance_ms(&source.fake, (int64_t)3400 * 1000);
	source_ask();
	asked_for("instance/service-accounts/default/token");
	fake_http_answer_with(200, TOKEN("vm-2", "\"3599\""), "Google");
	source_has_token("vm-2");
	assert_int_equal(fake_http.started, 4);
}

static void a_server_that_does_not_know_universes_is_googles(void **state)
{
	(void)state;
	source_open();
	source_ask();
	fake_http_answer_with(404, "<html>", "Google");
	/* Nor does a token need an address. */
	fake_http_answer_with(404, "", "Google");
	fake_http_answer_with(200, TOKEN("t", "60"), "Google");
	source_has_token("t");
}

static void a_server_of_another_universe_is_refused(void **state)
{
	static const struct {
		const char *configured;
		long status;
		const char *body;
	} cases[] = {
		{"googleapis.com", 200, "s3nsapis.fr"},
		{"googleapis.com", 200, ""},
		{"s3nsapis.fr", 200, "googleapis.com"},
		{"s3nsapis.fr", 404, ""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		source.options.universe_domain = cases[i].configured;
		source_open();
		source_ask();
		fake_http_answer_with(cases[i].status, cases[i].body, "Google");
		source_has_failed(FAILURE_PERMANENT, "other_universe", "universe_domain");
	}
	source.options.universe_domain = "s3nsapis.fr";
	source_open();
	source_ask();
	fake_http_answer_with(200, "s3nsapis.fr\n", "Google");
	fake_http_fail(HTTP_FAILURE_TIMEOUT);
	source_has_failed(FAILURE_TRANSIENT, "timeout", "in time");
}

static void what_does_not_say_that_it_is_a_metadata_server_is_none(void **state)
{
	static const char *const flavors[] = {NULL, "", "google", "Google, Google", "Amazon"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(flavors); i++) {
		source_open();
		source_ask();
		fake_http_answer_with(200, "googleapis.com", flavors[i]);
		source_has_failed(FAILURE_PERMANENT, "no_metadata_server", "metadata_host");
		source_ask();
		answer_first();
		fake_http_answer_with(200, TOKEN("t", "60"), flavors[i]);
		source_has_failed(FAILURE_PERMANENT, "no_metadata_server", "metadata_host");
	}
}

static void a_failure_is_classed_by_its_status(void **state)
{
	static const struct {
		long status;
		enum failure_class class;
		const char *detail;
	} cases[] = {
		{404, FAILURE_PERMANENT, "no service account"},
		{403, FAILURE_PERMANENT, "refuses"},
		{400, FAILURE_PERMANENT, "refuses"},
		{408, FAILURE_TRANSIENT, "tried again"},
		{429, FAILURE_TRANSIENT, "tried again"},
		{500, FAILURE_TRANSIENT, "tried again"},
		{503, FAILURE_TRANSIENT, "tried again"},
		{302, FAILURE_TRANSIENT, "redirect"},
	};

	(void)state;
	source_open();
	source_ask();
	answer_first();
	fake_http_fail(HTTP_FAILURE_CONNECT);
	source_has_failed(FAILURE_TRANSIENT, "connect", "connection");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		source_ask();
		asked_for("instance/service-accounts/default/token");
		fake_http_answer_with(cases[i].status, "SECRET", "Google");
		source_has_failed(cases[i].class, "unknown", cases[i].detail);
		assert_string_equal(failure_step_name(source.failure.step), "metadata");
	}
}

static void an_answer_that_is_no_token_is_a_failure(void **state)
{
	static const char *const bodies[] = {
		"",
		"SECRET",
		"{}",
		"{\"access_token\":\"t\"}",
		TOKEN("t", "0"),
		TOKEN("t", "-1"),
		TOKEN("", "60"),
		TOKEN("a b", "60"),
	};

	(void)state;
	source_open();
	source_ask();
	answer_first();
	for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
		if (i)
			source_ask();
		fake_http_answer_with(200, bodies[i], "Google");
		source_has_failed(FAILURE_TRANSIENT, "bad_answer", "expires_in");
	}
}

static void an_endpoint_of_ours_is_no_metadata_server(void **state)
{
	static const struct {
		const char *host;
		const char *ours;
		bool refused;
	} cases[] = {
		{"127.0.0.1:8174", "127.0.0.1:8174", true},
		{"localhost:8174", "127.0.0.1:8174", true},
		{"LOCALHOST:8174", "[::1]:8174", true},
		{"[::1]:8174", "[::1]:8174", true},
		{"172.17.0.1", "172.17.0.1:80", true},
		{"127.0.0.1:8174", "127.0.0.1:8175", false},
		{"127.0.0.1:8174", "[::1]:8174", false},
		{"metadata.google.internal:8174", "127.0.0.1:8174", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		source.options.metadata_host = cases[i].host;
		assert_int_equal(address_parse(&ours, cases[i].ours), 0);
		if (cases[i].refused)
			source_refused(cases[i].host, "the machine's own metadata server");
		else
			source_open();
	}
}

static void a_name_of_ours_is_no_metadata_server(void **state)
{
	static const struct {
		const char *host;
		uint16_t port; /* of an endpoint of ours that has that name */
		bool refused;
	} cases[] = {
		{"metadata", 80, true},
		{"metadata:8174", 8174, true},
		{"metadata.google.internal", 8174, false},
		{"metadata.google.internal:8174", 80, false},
		{"localhost:8174", 8174, false}, /* the endpoint is at another address */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		our_name = source.options.metadata_host = cases[i].host;
		our_port = cases[i].port;
		if (cases[i].refused)
			source_refused(cases[i].host, "by its address");
		else
			source_open();
	}
}

static void an_endpoint_that_is_opened_later_is_seen_at_the_next_refresh(void **state)
{
	(void)state;
	source_open();
	everything_is_ours = true;
	source_ask();
	source_has_failed(FAILURE_PERMANENT, "own_endpoint", "metadata_host");
	assert_int_equal(fake_http.started, 0);
	source.call = credential_get_token(source.credential, source_result, &source);
	credential_call_cancel(source.call);
}

static void another_host_is_another_source(void **state)
{
	struct credential *other = NULL;
	struct err err;

	(void)state;
	source_open();
	assert_int_equal(credential_open(&source.options, &other, &err), 0);
	assert_true(credential_equal(source.credential, other));
	credential_free(other);
	source.options.metadata_host = "127.0.0.1:1";
	assert_int_equal(credential_open(&source.options, &other, &err), 0);
	assert_false(credential_equal(source.credential, other));
	credential_free(other);
}

static void a_source_that_goes_ends_its_question(void **state)
{
	(void)state;
	source_open();
	source_ask();
	credential_call_cancel(source.call);
	credential_free(source.credential);
	source.credential = NULL;
	assert_int_equal(fake_http.cancelled, 1);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(the_machines_own_token_is_taken),
		CASE(a_server_that_does_not_know_universes_is_googles),
		CASE(a_server_of_another_universe_is_refused),
		CASE(what_does_not_say_that_it_is_a_metadata_server_is_none),
		CASE(a_failure_is_classed_by_its_status),
		CASE(an_answer_that_is_no_token_is_a_failure),
		CASE(an_endpoint_of_ours_is_no_metadata_server),
		CASE(a_name_of_ours_is_no_metadata_server),
		CASE(an_endpoint_that_is_opened_later_is_seen_at_the_next_refresh),
		CASE(another_host_is_another_source),
		CASE(a_source_that_goes_ends_its_question),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
