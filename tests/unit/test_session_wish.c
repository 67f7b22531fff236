/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/session_wish.h"

#include "broker/base/secret.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#define KEY "0123456789abcdef0123456789abcdef"
#define DOOR "\"door\": must be {\"secret\":…} with the 32 hex digits of before"

static struct session_wish wish;
static enum preflight preflight;
static struct session_refusal refusal;

static int forget(void **state)
{
	(void)state;
	session_wish_deinit(&wish);
	return 0;
}

static int read_wish(const char *body)
{
	session_wish_deinit(&wish);
	memset(&refusal, 0, sizeof(refusal));
	return session_wish_read(body, strlen(body), &wish, &preflight, &refusal);
}

static int read_peers(const char *body)
{
	session_wish_deinit(&wish);
	memset(&refusal, 0, sizeof(refusal));
	return session_peers_read(body, strlen(body), &wish, &refusal);
}

static void only_the_profile_is_required(void **state)
{
	(void)state;
	assert_int_equal(read_wish("{\"profile\":\"vertex\"}"), 0);
	assert_string_equal(wish.profile, "vertex");
	assert_null(wish.label);
	assert_int_equal(wish.ttl_s, 0);
	assert_false(address_is_set(&wish.listen));
	assert_int_equal(wish.pin, PIN_FIRST);
	assert_int_equal(wish.peer_count, 0);
	assert_false(wish.lease);
	assert_int_equal(preflight, PREFLIGHT_NONE);
	assert_int_equal(strspn(wish.id, "0123456789abcdef"), SESSION_ID_SIZE - 1);
}

static void every_wish_has_an_id_of_its_own(void **state)
{
	char first[SESSION_ID_SIZE];

	(void)state;
	assert_int_equal(read_wish("{\"profile\":\"vertex\"}"), 0);
	memcpy(first, wish.id, sizeof(first));
	assert_int_equal(read_wish("{\"profile\":\"vertex\"}"), 0);
	assert_string_not_equal(first, wish.id);
}

static void a_whole_wish_is_read(void **state)
{
	char text[ADDRESS_TEXT_SIZE];

	(void)state;
	assert_int_equal(
		read_wish(
			"{\"profile\":\"p\",\"ttl_s\":60,\"label\":\"a b\",\"attach\":\"gateway\","
			"\"listen\":\"[fd00::1]:8174\",\"pin\":\"launcher\","
			"\"peer\":[\"172.17.0.2\",\"fd00::2\"],\"lease\":true,"
			"\"preflight\":\"mint\"}"),
		0);
	assert_int_equal(wish.ttl_s, 60);
	assert_string_equal(wish.label, "a b");
	assert_string_equal(address_format(&wish.listen, text), "[fd00::1]:8174");
	assert_int_equal(wish.pin, PIN_LAUNCHER);
	assert_int_equal(wish.peer_count, 2);
	assert_string_equal(address_format_ip(&wish.peers[1], text), "fd00::2");
	assert_true(wish.lease);
	assert_int_equal(preflight, PREFLIGHT_MINT);
}

static void a_wish_for_the_inside_is_read(void **state)
{
	(void)state;
	assert_int_equal(read_wish("{\"profile\":\"p\",\"attach\":\"inside\",\"lease\":true,"
				   "\"listen\":null,\"peer\":null,\"door\":null}"),
			 0);
	assert_int_equal(wish.attach, ATTACH_INSIDE);
	assert_null(wish.door_secret);
	assert_int_equal(read_wish("{\"door\":{\"secret\":\"" KEY "\"},\"profile\":\"p\","
				   "\"lease\":true,\"attach\":\"inside\"}"),
			 0);
	assert_string_equal(secret_bytes(wish.door_secret), KEY);
	assert_int_equal(read_wish("{\"profile\":\"p\"}"), 0);
	assert_int_equal(wish.attach, ATTACH_GATEWAY);
}

static void a_label_may_have_128_characters(void **state)
{
	char body[256];
	char label[SESSION_MAX_LABEL + 2];

	(void)state;
	memset(label, '~', sizeof(label));
	label[SESSION_MAX_LABEL] = '\0';
	(void)snprintf(body, sizeof(body), "{\"profile\":\"p\",\"label\":\"%s\"}", label);
	assert_int_equal(read_wish(body), 0);
	label[SESSION_MAX_LABEL] = '~';
	label[SESSION_MAX_LABEL + 1] = '\0';
	(void)snprintf(body, sizeof(body), "{\"profile\":\"p\",\"label\":\"%s\"}", label);
	assert_int_equal(read_wish(body), -1);
}

/* The bug: [a,a] was taken for [a,b], and [a,b,a] for another list than [a,b]. */
static void an_address_that_is_named_twice_is_one(void **state)
{
	(void)state;
	assert_int_equal(read_peers("{\"peer\":[\"172.17.0.2\",\"172.17.0.2\",\"fd00::2\","
				    "\"fd00:0::2\",\"::ffff:172.17.0.2\"]}"),
			 0);
	assert_int_equal(wish.peer_count, 2);
}

static void eight_addresses_are_taken_and_not_nine(void **state)
{
	(void)state;
	assert_int_equal(read_peers(
				 "{\"peer\":[\"10.0.0.1\",\"10.0.0.2\",\"10.0.0.3\",\"10.0.0.4\","
				 "\"10.0.0.5\",\"10.0.0.6\",\"10.0.0.7\",\"10.0.0.8\"]}"),
			 0);
	assert_int_equal(wish.peer_count, ADMISSION_MAX_ADDRESSES);
	assert_int_equal(read_peers(
				 "{\"peer\":[\"10.0.0.1\",\"10.0.0.2\",\"10.0.0.3\",\"10.0.0.4\","
				 "\"10.0.0.5\",\"10.0.0.6\",\"10.0.0.7\",\"10.0.0.8\","
				 "\"10.0.0.9\"]}"),
			 -1);
}

static void what_is_wrong_is_named(void **state)
{
	static const struct {
		const char *body;
		const char *message;
	} cases[] = {
		{"{}", "\"profile\": is required"},
		{"", "\"body\": must be one JSON object without a key twice"},
		{"{\"a\":1,\"a\":2}", "\"body\": must be one JSON object without a key twice"},
		{"{\"colour\":1}", "\"colour\": no such key here"},
		{"{\"profile\":1}", "\"profile\": must be the name of a profile"},
		{"{\"ttl_s\":0}", "\"ttl_s\": must be a number of seconds from 1"},
		{"{\"attach\":\"x\"}", "\"attach\": must be \"gateway\" or \"inside\""},
		{"{\"profile\":\"p\",\"attach\":\"inside\"}",
		 "\"lease\": must be true with \"attach\":\"inside\""},
		{"{\"profile\":\"p\",\"attach\":\"inside\",\"lease\":true,\"pin\":\"first\"}",
		 "\"pin\": does not go with \"attach\":\"inside\""},
		{"{\"profile\":\"p\",\"attach\":\"inside\",\"lease\":true,\"listen\":\"127.0.0.1\"}",
		 "\"listen\": does not go with \"attach\":\"inside\""},
		{"{\"profile\":\"p\",\"peer\":[\"10.0.0.1\"],\"lease\":true,\"attach\":\"inside\"}",
		 "\"peer\": does not go with \"attach\":\"inside\""},
		{"{\"door\":{\"secret\":\"" KEY "\"}}", "\"door\": needs \"attach\":\"inside\""},
		{"{\"door\":{\"secret\":\"x\"}}", DOOR},
		{"{\"door\":{\"secret\":\"" KEY "0\"}}", DOOR},
		{"{\"door\":{\"secret\":\"" KEY "\",\"ticket\":\"" KEY "\"}}", DOOR},
		{"{\"door\":\"" KEY "\"}", DOOR},
		{"{\"pin\":\"x\"}", "\"pin\": must be \"launcher\" or \"first\""},
		{"{\"lease\":1}", "\"lease\": must be true or false"},
		{"{\"preflight\":1}", "\"preflight\": must be \"none\", \"grant\" or \"mint\""},
		{"{\"listen\":\"::\"}",
		 "\"listen\": must be an IP address, with or without a port"},
		{"{\"peer\":[]}", "\"peer\": must be a list of 1 to 8 IP addresses"},
		{"{\"label\":\"\\u00e9\"}",
		 "\"label\": must be at most 128 printable ASCII characters"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(read_wish(cases[i].body), -1);
		assert_string_equal(refusal.code, "bad_request");
		assert_string_equal(refusal.message, cases[i].message);
	}
}

static void a_pin_is_a_list_of_peers_and_nothing_else(void **state)
{
	(void)state;
	assert_int_equal(read_peers("{\"peer\":[\"172.17.0.2\"]}"), 0);
	assert_int_equal(read_peers("{}"), -1);
	assert_string_equal(refusal.message, "\"peer\": is required");
	assert_int_equal(read_peers("{\"peer\":null}"), -1);
	assert_int_equal(read_peers("{\"peer\":[\"172.17.0.2\"],\"profile\":\"p\"}"), -1);
	assert_string_equal(refusal.message, "\"profile\": no such key here");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(only_the_profile_is_required, forget),
		cmocka_unit_test_teardown(every_wish_has_an_id_of_its_own, forget),
		cmocka_unit_test_teardown(a_wish_for_the_inside_is_read, forget),
		cmocka_unit_test_teardown(a_whole_wish_is_read, forget),
		cmocka_unit_test_teardown(a_label_may_have_128_characters, forget),
		cmocka_unit_test_teardown(an_address_that_is_named_twice_is_one, forget),
		cmocka_unit_test_teardown(eight_addresses_are_taken_and_not_nine, forget),
		cmocka_unit_test_teardown(what_is_wrong_is_named, forget),
		cmocka_unit_test_teardown(a_pin_is_a_list_of_peers_and_nothing_else, forget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
