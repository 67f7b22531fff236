/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/admission.h"

#include "broker/config.h"
#include "broker/net/bridges.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#define HOST "172.17.0.1"
#define AGENT "172.17.0.2"
#define OTHER "172.17.0.3"
#define AGENT6 "fd00:17::2"
#define ELSEWHERE "198.51.100.7"

static struct address address(const char *text)
{
	struct address out;

	assert_int_equal(address_parse_ip(&out, text), 0);
	return out;
}

/* A host with one bridge, in the place of broker/net/bridges.c. */
bool bridges_own(struct bridges *bridges, const struct address *wanted)
{
	const struct address host = address(HOST);

	(void)bridges;
	return address_same_ip(&host, wanted) || address_is_loopback(wanted);
}

bool bridges_contain(struct bridges *bridges, const struct address *wanted)
{
	struct cidr v4;
	struct cidr v6;

	assert_int_equal(cidr_parse(&v4, "172.17.0.0/16"), 0);
	assert_int_equal(cidr_parse(&v6, "fd00:17::/64"), 0);
	return !bridges_own(bridges, wanted) &&
	       (cidr_contains(&v4, wanted) || cidr_contains(&v6, wanted));
}

static const struct peers_config automatic = {.automatic = true};
static struct admission admission;

static void at(enum pin pin, bool loopback)
{
	admission = (struct admission){.pin = pin, .loopback = loopback};
}

static enum admission_verdict judge(const struct peers_config *peers, const char *peer)
{
	const struct address from = address(peer);

	return admission_judge(&admission, peers, NULL, &from);
}

static bool spoken(const char *peer)
{
	const struct address from = address(peer);

	return admission_spoken(&admission, NULL, &from);
}

static void pin_to(const char *first, const char *second)
{
	const struct address list[] = {address(first), address(second)};

	admission_pin(&admission, list, 2);
}

static bool is_pinned_to(const char *first, const char *second)
{
	const struct address list[] = {address(first), address(second ? second : first)};

	return admission_is_pinned_to(&admission, list, second ? 2 : 1);
}

static void pins_have_names(void **state)
{
	(void)state;
	assert_string_equal(pin_name(PIN_LAUNCHER), "launcher");
	assert_string_equal(pin_name(PIN_FIRST), "first");
	assert_null(pin_name(PIN_NONE));
}

static void auto_is_the_bridges_or_on_loopback_loopback(void **state)
{
	static const struct {
		bool loopback;
		const char *peer;
		enum admission_verdict verdict;
	} cases[] = {
		{false, AGENT, ADMISSION_YES},	    {false, AGENT6, ADMISSION_YES},
		{false, HOST, ADMISSION_NO},	    {false, "127.0.0.1", ADMISSION_NO},
		{false, ELSEWHERE, ADMISSION_NO},   {false, "fd00:18::2", ADMISSION_NO},
		{true, "127.0.0.1", ADMISSION_YES}, {true, "127.9.9.9", ADMISSION_YES},
		{true, "::1", ADMISSION_YES},	    {true, AGENT, ADMISSION_NO},
		{true, HOST, ADMISSION_NO},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		at(PIN_NONE, cases[i].loopback);
		assert_int_equal(judge(&automatic, cases[i].peer), cases[i].verdict);
	}
}

static void a_list_of_networks_is_all_that_counts(void **state)
{
	struct cidr networks[2];
	const struct peers_config peers = {.networks = networks, .count = 2};

	(void)state;
	assert_int_equal(cidr_parse(&networks[0], "198.51.100.0/24"), 0);
	assert_int_equal(cidr_parse(&networks[1], "fd00:17::2/128"), 0);
	at(PIN_NONE, false);
	assert_int_equal(judge(&peers, ELSEWHERE), ADMISSION_YES);
	assert_int_equal(judge(&peers, AGENT6), ADMISSION_YES);
	assert_int_equal(judge(&peers, AGENT), ADMISSION_NO);
	const struct peers_config nobody = {0};
	assert_int_equal(judge(&nobody, ELSEWHERE), ADMISSION_NO);
}

static void once_pinned_the_pin_alone_decides(void **state)
{
	(void)state;
	for (enum pin pin = PIN_LAUNCHER; pin <= PIN_FIRST; pin++) {
		at(pin, false);
		pin_to(ELSEWHERE, AGENT6);
		assert_int_equal(judge(&automatic, ELSEWHERE), ADMISSION_YES);
		assert_int_equal(judge(&automatic, AGENT6), ADMISSION_YES);
		assert_int_equal(judge(&automatic, AGENT), ADMISSION_NO);
		assert_int_equal(judge(&automatic, HOST), ADMISSION_NO);
	}
}

static void whoever_may_come_waits_for_the_launchers_pin(void **state)
{
	(void)state;
	at(PIN_LAUNCHER, false);
	assert_int_equal(judge(&automatic, AGENT), ADMISSION_LATER);
	assert_int_equal(judge(&automatic, ELSEWHERE), ADMISSION_NO);
	assert_false(spoken(AGENT));
	assert_int_equal(admission.count, 0);
}

static void the_first_that_speaks_is_pinned_and_nobody_after_it(void **state)
{
	(void)state;
	at(PIN_FIRST, false);
	assert_true(spoken(AGENT));
	assert_false(spoken(OTHER));
	assert_true(is_pinned_to(AGENT, NULL));
	assert_int_equal(judge(&automatic, OTHER), ADMISSION_NO);
}

static void the_hosts_own_addresses_are_not_pinned_by_speaking(void **state)
{
	(void)state;
	at(PIN_FIRST, false);
	assert_false(spoken(HOST));
	assert_false(spoken("127.0.0.1"));
	assert_int_equal(admission.count, 0);
	at(PIN_FIRST, true);
	assert_true(spoken("127.0.0.1"));
}

static void a_standing_endpoint_is_never_pinned(void **state)
{
	(void)state;
	at(PIN_NONE, false);
	assert_false(spoken(AGENT));
	assert_int_equal(judge(&automatic, OTHER), ADMISSION_YES);
}

static void hosts_may_be_pinned_and_nothing_else(void **state)
{
	static const struct {
		const char *address;
		bool anywhere;
		bool on_loopback;
	} cases[] = {
		{AGENT, true, true},	     {AGENT6, true, true},
		{ELSEWHERE, true, true},     {HOST, false, true},
		{"127.0.0.1", false, true},  {"::1", false, true},
		{"0.0.0.0", false, false},   {"::", false, false},
		{"224.0.0.1", false, false}, {"239.1.2.3", false, false},
		{"ff02::1", false, false},   {"255.255.255.255", false, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct address peer = address(cases[i].address);
		at(PIN_LAUNCHER, false);
		assert_int_equal(admission_may_pin(&admission, NULL, &peer), cases[i].anywhere);
		at(PIN_LAUNCHER, true);
		assert_int_equal(admission_may_pin(&admission, NULL, &peer), cases[i].on_loopback);
	}
}

static void the_order_of_a_list_does_not_matter(void **state)
{
	(void)state;
	at(PIN_LAUNCHER, false);
	pin_to(AGENT, AGENT6);
	assert_true(is_pinned_to(AGENT, AGENT6));
	assert_true(is_pinned_to(AGENT6, AGENT));
	assert_false(is_pinned_to(AGENT, OTHER));
	assert_false(is_pinned_to(AGENT, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pins_have_names),
		cmocka_unit_test(auto_is_the_bridges_or_on_loopback_loopback),
		cmocka_unit_test(a_list_of_networks_is_all_that_counts),
		cmocka_unit_test(once_pinned_the_pin_alone_decides),
		cmocka_unit_test(whoever_may_come_waits_for_the_launchers_pin),
		cmocka_unit_test(the_first_that_speaks_is_pinned_and_nobody_after_it),
		cmocka_unit_test(the_hosts_own_addresses_are_not_pinned_by_speaking),
		cmocka_unit_test(a_standing_endpoint_is_never_pinned),
		cmocka_unit_test(hosts_may_be_pinned_and_nothing_else),
		cmocka_unit_test(the_order_of_a_list_does_not_matter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
