/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/net/address.h"
#include "broker/net/origin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct address ip(const char *text)
{
	struct address address = {0};

	if (address_parse_ip(&address, text))
		fail_msg("%s is an address", text);
	return address;
}

static void an_address_and_port_are_read_and_written_back(void **state)
{
	static const char *const cases[][2] = {
		{"127.0.0.1:8174", "127.0.0.1:8174"},
		{"0.0.0.0:0", "0.0.0.0:0"},
		{"255.255.255.255:65535", "255.255.255.255:65535"},
		{"127.0.0.1:080", "127.0.0.1:80"},
		{"[::1]:0", "[::1]:0"},
		{"[2001:DB8:0:0::1]:443", "[2001:db8::1]:443"},
		{"[::ffff:10.1.2.3]:80", "10.1.2.3:80"},
		{"[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535",
		 "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535"},
	};
	char text[ADDRESS_TEXT_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct address address = {0};
		if (address_parse(&address, cases[i][0]))
			fail_msg("%s is refused", cases[i][0]);
		assert_string_equal(address_format(&address, text), cases[i][1]);
		assert_true(address_is_set(&address));
	}
}

static void what_is_no_address_and_port_is_refused(void **state)
{
	static const char *const cases[] = {
		"",
		":",
		":80",
		"127.0.0.1",
		"127.0.0.1:",
		"127.0.0.1:65536",
		"127.0.0.1:-1",
		"127.0.0.1:+1",
		"127.0.0.1: 80",
		"127.0.0.1:80 ",
		" 127.0.0.1:80",
		"127.0.0.1:80x",
		"127.0.0.1:0x50",
		"127.0.0.1:18446744073709551616",
		"127.1:80",
		"127.0.0.256:80",
		"1.2.3.4.5:80",
		"localhost:80",
		"::1:80",
		"[::1]",
		"[::1]80",
		"[::1:80",
		"[]:80",
		"[127.0.0.1]:80",
		"[fe80::1%lo]:80",
		"[::1]]:80",
		"[::1]:80:80",
		"127.0.0.1:80:80",
		"[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:1",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct address address = {0};
		if (!address_parse(&address, cases[i]))
			fail_msg("%s is accepted", cases[i]);
		assert_false(address_is_set(&address));
	}
}

static void an_ip_is_read_without_a_port_only(void **state)
{
	static const char *const bad[] = {"", "127.0.0.1:80", "[::1]", "::1%lo", "a", "1", "::1 "};
	char text[ADDRESS_TEXT_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct address address;
		if (!address_parse_ip(&address, bad[i]))
			fail_msg("%s is accepted", bad[i]);
	}
	struct address address = ip("fd00::1");
	assert_string_equal(address_format_ip(&address, text), "fd00::1");
	assert_int_equal(address_port(&address), 0);
	address_set_port(&address, 81);
	assert_string_equal(address_format(&address, text), "[fd00::1]:81");
	address = ip("::ffff:127.0.0.1");
	assert_string_equal(address_format_ip(&address, text), "127.0.0.1");
	assert_int_equal(address.any.sa_family, AF_INET);
	assert_int_equal(address.len, sizeof(struct sockaddr_in));
}

static void a_peer_in_ipv6_clothes_is_its_ipv4_self(void **state)
{
	struct sockaddr_in6 mapped = {.sin6_family = AF_INET6, .sin6_port = htons(4321)};
	struct sockaddr_in plain = {.sin_family = AF_INET, .sin_port = htons(80)};
	struct address address = {0};
	char text[ADDRESS_TEXT_SIZE];

	(void)state;
	mapped.sin6_addr = (struct in6_addr)IN6ADDR_LOOPBACK_INIT;
	assert_int_equal(address_from_sockaddr(&address, (struct sockaddr *)&mapped,
					       sizeof(mapped)),
			 0);
	assert_string_equal(address_format(&address, text), "[::1]:4321");
	memcpy(mapped.sin6_addr.s6_addr, "\0\0\0\0\0\0\0\0\0\0\xff\xff\xac\x11\0\x02", 16);
	assert_int_equal(address_from_sockaddr(&address, (struct sockaddr *)&mapped,
					       sizeof(mapped)),
			 0);
	assert_string_equal(address_format(&address, text), "172.17.0.2:4321");
	plain.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(address_from_sockaddr(&address, (struct sockaddr *)&plain, sizeof(plain)),
			 0);
	assert_string_equal(address_format(&address, text), "127.0.0.1:80");
}

static void another_family_or_a_short_sockaddr_is_refused(void **state)
{
	struct sockaddr_in6 sa = {.sin6_family = AF_UNIX};
	struct address address = {0};

	(void)state;
	assert_int_equal(address_from_sockaddr(&address, (struct sockaddr *)&sa, sizeof(sa)), -1);
	sa.sin6_family = AF_INET6;
	assert_int_equal(address_from_sockaddr(&address, (struct sockaddr *)&sa,
					       sizeof(struct sockaddr_in)),
			 -1);
	assert_false(address_is_set(&address));
}

static void kinds_of_addresses_are_told_apart(void **state)
{
	static const struct {
		const char *text;
		bool loopback;
		bool wildcard;
		bool metadata;
	} cases[] = {
		{"127.0.0.1", true, false, false},
		{"127.255.255.255", true, false, false},
		{"128.0.0.1", false, false, false},
		{"::1", true, false, false},
		{"::ffff:127.0.0.1", true, false, false},
		{"::127.0.0.1", false, false, false},
		{"0.0.0.0", false, true, false},
		{"::", false, true, false},
		{"::ffff:0.0.0.0", false, true, false},
		{"0.0.0.1", false, false, false},
		{"169.254.169.254", false, false, true},
		{"::ffff:169.254.169.254", false, false, true},
		{"169.254.169.253", false, false, false},
		{"fd00:ec2::254", false, false, true},
		{"fd20:ce::254", false, false, true},
		{"fd20:ce::255", false, false, false},
	};
	const struct address unset = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct address address = ip(cases[i].text);
		assert_int_equal(address_is_loopback(&address), cases[i].loopback);
		assert_int_equal(address_is_wildcard(&address), cases[i].wildcard);
		assert_int_equal(address_is_link_local_metadata(&address), cases[i].metadata);
	}
	assert_false(address_is_loopback(&unset));
	assert_false(address_is_wildcard(&unset));
	assert_false(address_is_link_local_metadata(&unset));
}

static void the_same_ip_is_the_same_whatever_the_port(void **state)
{
	struct address a = ip("10.0.0.1");
	struct address b = ip("::ffff:10.0.0.1");
	struct address link = ip("fe80::1");
	struct address other_link = ip("fe80::1");
	const struct address unset = {0};

	(void)state;
	address_set_port(&b, 80);
	other_link.v6.sin6_scope_id = 3;
	assert_true(address_same_ip(&a, &b));
	assert_true(address_same_ip(&link, &link));
	assert_false(address_same_ip(&link, &other_link));
	assert_false(address_same_ip(&a, &link));
	b = ip("10.0.0.2");
	assert_false(address_same_ip(&a, &b));
	assert_false(address_same_ip(&unset, &unset));
	assert_false(address_same_ip(&unset, &a));
}

static void a_network_contains_what_shares_its_prefix(void **state)
{
	static const struct {
		const char *cidr;
		const char *inside;
		const char *outside;
	} cases[] = {
		{"10.0.0.0/8", "10.255.0.1", "11.0.0.0"},
		{"172.17.0.0/16", "172.17.255.255", "172.18.0.0"},
		{"192.168.4.0/22", "192.168.7.255", "192.168.8.0"},
		{"192.168.7.128/25", "192.168.7.128", "192.168.7.127"},
		{"192.168.7.1/32", "192.168.7.1", "192.168.7.0"},
		{"192.168.7.1", "::ffff:192.168.7.1", "192.168.7.2"},
		{"0.0.0.0/0", "255.0.0.1", "::1"},
		{"128.0.0.0/1", "255.0.0.1", "127.255.255.255"},
		{"::/0", "fd00::1", "10.0.0.1"},
		{"fd00::/8", "fdff::1", "fc00::1"},
		{"2001:db8::/33", "2001:db8:7fff::1", "2001:db8:8000::1"},
		{"::1", "::1", "::2"},
	};
	const struct address unset = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct cidr cidr;
		const struct address inside = ip(cases[i].inside);
		const struct address outside = ip(cases[i].outside);
		if (cidr_parse(&cidr, cases[i].cidr))
			fail_msg("%s is refused", cases[i].cidr);
		assert_true(cidr_contains(&cidr, &inside));
		assert_false(cidr_contains(&cidr, &outside));
		assert_false(cidr_contains(&cidr, &unset));
	}
}

static void a_link_local_network_is_of_one_link(void **state)
{
	struct address here = ip("fe80::1");
	struct address peer = ip("fe80::2");
	struct cidr network;
	struct cidr configured;

	(void)state;
	here.v6.sin6_scope_id = 3;
	cidr_of(&network, &here, 64);
	assert_int_equal(cidr_parse(&configured, "fe80::/64"), 0);
	assert_true(cidr_contains(&configured, &peer));
	assert_false(cidr_contains(&network, &peer));
	peer.v6.sin6_scope_id = 4;
	assert_true(cidr_contains(&configured, &peer));
	assert_false(cidr_contains(&network, &peer));
	peer.v6.sin6_scope_id = 3;
	assert_true(cidr_contains(&network, &peer));
}

static void what_is_no_network_is_refused(void **state)
{
	static const char *const cases[] = {
		"",
		"/",
		"/8",
		"10.0.0.0/",
		"10.0.0.0/33",
		"10.0.0.0/-1",
		"10.0.0.0/8/8",
		"10.0.0.0/ 8",
		"10.0.0.1/8",
		"10.0.0.0/255.0.0.0",
		"10/8",
		"::/129",
		"::1/127",
		"fd00::1/64",
		"auto",
		"128.0.0.0/0",
		"::ffff:10.0.0.0/104",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct cidr cidr;
		if (!cidr_parse(&cidr, cases[i]))
			fail_msg("%s is accepted", cases[i]);
	}
}

static void an_origin_is_a_scheme_a_host_and_a_port(void **state)
{
	static const struct {
		const char *url;
		const char *origin; /* NULL: refused */
		bool plain;
		bool loopback;
	} cases[] = {
		{"https://a.test", "https://a.test", false, false},
		{"https://a.test/", "https://a.test", false, false},
		{"https://a.test:8443/", "https://a.test:8443", false, false},
		{"http://localhost:1", "http://localhost:1", true, true},
		{"http://127.0.0.9", "http://127.0.0.9", true, true},
		{"http://[::1]:80/", "http://[::1]:80", true, true},
		{"http://[::ffff:127.0.0.1]", "http://[::ffff:127.0.0.1]", true, true},
		{"http://localhost.a.test", "http://localhost.a.test", true, false},
		{"http://127.1", "http://127.1", true, false},
		{"http://127.0.0.1.a.test", "http://127.0.0.1.a.test", true, false},
		{"http://10.0.0.1", "http://10.0.0.1", true, false},
		{"HTTPS://a.test", NULL, false, false},
		{"https:/a.test", NULL, false, false},
		{"https://a.test//", NULL, false, false},
		{"https://a.test/x", NULL, false, false},
		{"https://a.test\\@127.0.0.1", NULL, false, false},
		{"https://127.0.0.1@a.test", NULL, false, false},
		{"https://a.test:80:80", NULL, false, false},
		{"https://[::1", NULL, false, false},
		{"https://:80", NULL, false, false},
		{"", NULL, false, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_FREE char *origin = NULL;
		const char *reason;
		const int result = origin_parse(cases[i].url, &origin, &reason);
		if (result != (cases[i].origin ? 0 : -1))
			fail_msg("%s", cases[i].url);
		if (!cases[i].origin)
			continue;
		assert_string_equal(origin, cases[i].origin);
		assert_null(reason);
		assert_int_equal(origin_is_plain(origin), cases[i].plain);
		assert_int_equal(origin_is_loopback(origin), cases[i].loopback);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_and_port_are_read_and_written_back),
		cmocka_unit_test(what_is_no_address_and_port_is_refused),
		cmocka_unit_test(an_ip_is_read_without_a_port_only),
		cmocka_unit_test(a_peer_in_ipv6_clothes_is_its_ipv4_self),
		cmocka_unit_test(another_family_or_a_short_sockaddr_is_refused),
		cmocka_unit_test(kinds_of_addresses_are_told_apart),
		cmocka_unit_test(the_same_ip_is_the_same_whatever_the_port),
		cmocka_unit_test(a_network_contains_what_shares_its_prefix),
		cmocka_unit_test(a_link_local_network_is_of_one_link),
		cmocka_unit_test(what_is_no_network_is_refused),
		cmocka_unit_test(an_origin_is_a_scheme_a_host_and_a_port),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
