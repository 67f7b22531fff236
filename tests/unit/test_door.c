/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/door/attach.h"
#include "sandbox/door/netlink.h"
#include "sandbox/door/options.h"
#include "sandbox/door/rules.h"

#include <arpa/inet.h>
#include <linux/fib_rules.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define HEX32 "0123456789abcdef0123456789abcdef"

static void a_network_is_an_address_and_its_bits(void **state)
{
	static const struct {
		const char *text;
		const char *address;
		int family;
		int bits;
	} cases[] = {
		{"169.254.0.0/16", "169.254.0.0", AF_INET, 16},
		{"168.63.129.16", "168.63.129.16", AF_INET, 32},
		{"128.0.0.0/1", "128.0.0.0", AF_INET, 1},
		{"10.0.0.252/30", "10.0.0.252", AF_INET, 30},
		{"fd20:ce::/32", "fd20:ce::", AF_INET6, 32},
		{"fd20:ce::254", "fd20:ce::254", AF_INET6, 128},
		{"fd00:ec2::fe/127", "fd00:ec2::fe", AF_INET6, 127},
		{"::ffff:1.2.3.4/128", "::ffff:1.2.3.4", AF_INET6, 128},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct cidr found;
		uint8_t address[16] = {0};

		assert_int_equal(inet_pton(cases[i].family, cases[i].address, address), 1);
		assert_int_equal(cidr_parse(cases[i].text, &found), 0);
		assert_int_equal(found.family, cases[i].family);
		assert_int_equal(found.bits, cases[i].bits);
		assert_memory_equal(found.address, address, sizeof(address));
	}
}

static void what_is_no_network_changes_nothing(void **state)
{
	static const char *const cases[] = {
		"",
		"/",
		"/8",
		"1.2.3",
		"1.2.3.4/",
		"1.2.3.4/0",
		"1.2.3.4/33",
		"1.2.3.4/31x",
		"1.2.3.4/+8",
		"1.2.3.4/ 8",
		"1.2.3.4/-1",
		"1.2.3.5/31",
		"10.0.0.0/8/8",
		"256.0.0.1",
		"1.2.3.4 ",
		"fd00::/0",
		"fd00::/129",
		"fd00::1/127",
		"fd00::1::",
		"name",
		"fe80::1%eth0",
		"0.0.0.0/0",
		"::/0",
		"1.2.3.4/4294967304",
		"1.2.3.4/18446744073709551624",
		"1111:1111:1111:1111:1111:1111:111.111.111.1111/128",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct cidr found = {.bits = 77};

		assert_int_equal(cidr_parse(cases[i], &found), -1);
		assert_int_equal(found.bits, 77);
	}
}

static void a_broker_says_one_of_four_things(void **state)
{
	static const struct {
		const char *text;
		enum answer answer;
	} cases[] = {
		{"go", ANSWER_GO},
		{"end", ANSWER_END},
		{"ok " HEX32, ANSWER_OK},
		{"no room", ANSWER_NO},
		{"no ", ANSWER_NO},
		{"", ANSWER_UNKNOWN},
		{"g", ANSWER_UNKNOWN},
		{"go ", ANSWER_UNKNOWN},
		{"GO", ANSWER_UNKNOWN},
		{"ended", ANSWER_UNKNOWN},
		{"ok", ANSWER_UNKNOWN},
		{"ok ", ANSWER_UNKNOWN},
		{"ok " HEX32 "0", ANSWER_UNKNOWN},
		{"ok  123456789abcdef0123456789abcdef", ANSWER_UNKNOWN},
		{"ok 0123456789ABCDEF0123456789ABCDEF", ANSWER_UNKNOWN},
		{"nothing", ANSWER_UNKNOWN},
	};
	char longest[258];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(answer_read(cases[i].text, strlen(cases[i].text)),
				 cases[i].answer);
	/* A NUL within, and what is longer than a message may be. */
	assert_int_equal(answer_read("go\0", 3), ANSWER_UNKNOWN);
	memset(longest, 'x', sizeof(longest));
	memcpy(longest, "no ", 3);
	longest[257] = '\0';
	assert_int_equal(answer_read(longest, 257), ANSWER_UNKNOWN);
	longest[256] = '\0';
	assert_int_equal(answer_read(longest, 256), ANSWER_NO);
}

/* A rule as this kernel tells it: the door's message, with what the kernel adds. */
static void tell(struct nl_request *told, const struct rule *rule)
{
	static const uint32_t any_length = UINT32_MAX;
	static const uint16_t whole_port = UINT16_MAX;

	rule_write(told, RTM_NEWRULE, rule);
	nl_put(told, FRA_SUPPRESS_PREFIXLEN, &any_length, sizeof(any_length));
	if (rule->port)
		nl_put(told, 29, &whole_port, sizeof(whole_port)); /* FRA_DPORT_MASK, Linux 6.17 */
}

static void make(uint8_t family, struct rule_list *out)
{
	static char name[] = "postern-door";
	static char shut[] = "--shut";
	static char dns[] = "--dns";
	static char v4[] = "169.254.0.0/16";
	static char v6[] = "fd20:ce::/32";
	static char resolver4[] = "169.254.169.253";
	static char resolver6[] = "fd20:ce::53";
	static char *argv[] = {name, shut, v4, shut, v6, dns, resolver4, dns, resolver6, NULL};
	struct door_options options;

	options_parse(argv, &options);
	rules_make(family, &options, out);
}

static void rules_stand_in_the_order_of_their_priorities(void **state)
{
	static const struct {
		uint8_t family;
		size_t count;
		uint32_t priorities[10];
	} cases[] = {
		{AF_INET, 10, {0, 1, 2, 3, 4, 5, 6, 7, 32766, 32767}},
		{AF_INET6, 5, {0, 4, 5, 6, 32766}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct rule_list list;

		make(cases[i].family, &list);
		assert_int_equal(list.count, cases[i].count);
		for (size_t j = 0; j < list.count; j++) {
			const struct rule *const rule = &list.rules[j];

			assert_int_equal(rule->priority, cases[i].priorities[j]);
			assert_int_equal(rule->to.family, cases[i].family);
			assert_int_equal(rule->is_there, rule->origin == RTPROT_KERNEL);
		}
	}
}

static void each_rule_is_itself_and_no_other(void **state)
{
	static const uint8_t families[] = {AF_INET, AF_INET6};

	(void)state;
	for (size_t f = 0; f < ARRAY_LEN(families); f++) {
		struct rule_list list;

		make(families[f], &list);
		for (size_t i = 0; i < list.count; i++) {
			struct nl_request told;

			tell(&told, &list.rules[i]);
			for (size_t j = 0; j < list.count; j++)
				assert_int_equal(rule_is(&told.head, &list.rules[j]), i == j);
		}
	}
}

/* Appended to a rule: an attribute that makes another rule of it, or that nobody knows. */
static void a_rule_with_more_to_it_is_another(void **state)
{
	static const struct {
		uint16_t type;
		uint16_t size;
		uint32_t value;
	} more[] = {
		{FRA_FWMARK, 4, 0},
		{FRA_FWMASK, 4, 0},
		{FRA_SUPPRESS_PREFIXLEN, 4, 0},
		{FRA_SUPPRESS_IFGROUP, 4, 0},
		{FRA_OIFNAME, 3, 'l'},
		{FRA_L3MDEV, 1, 0},
		{FRA_UID_RANGE, 8, 0},
		{FRA_SPORT_RANGE, 4, 0},
		{FRA_SRC, 4, 0},
		{29, 2, 0xfffe},
		{29, 4, UINT32_MAX},
		{29, 0, 0},
		{FRA_GOTO, 4, 0},
		{FRA_PAD, 0, 0},
		{0, 0, 0},
		{1000, 4, 0},
		{FRA_TABLE, 4, 7},
		{FRA_PROTOCOL, 1, 3},
	};
	struct rule_list list;

	(void)state;
	make(AF_INET, &list);
	for (size_t i = 0; i < list.count; i++) {
		for (size_t j = 0; j < ARRAY_LEN(more); j++) {
			const uint32_t value[2] = {more[j].value};
			struct nl_request told;

			tell(&told, &list.rules[i]);
			assert_true(rule_is(&told.head, &list.rules[i]));
			nl_put(&told, more[j].type, value, more[j].size);
			assert_false(rule_is(&told.head, &list.rules[i]));
		}
	}
}

static void a_rule_that_is_cut_or_changed_is_another(void **state)
{
	struct rule_list list;

	(void)state;
	make(AF_INET, &list);
	for (size_t i = 0; i < list.count; i++) {
		struct nl_request whole;

		rule_write(&whole, RTM_NEWRULE, &list.rules[i]);
		for (uint32_t length = 0; length < whole.head.nlmsg_len; length += NLMSG_ALIGNTO) {
			struct nl_request cut = whole;

			cut.head.nlmsg_len = length;
			assert_false(rule_is(&cut.head, &list.rules[i]));
		}
		/* Each bit of the fixed part and of the attributes, but for what pads them. */
		for (size_t bit = 0; bit < sizeof(struct fib_rule_hdr) * 8; bit++) {
			struct nl_request changed = whole;

			changed.rest[bit / 8] = (char)(changed.rest[bit / 8] ^ (1 << bit % 8));
			assert_false(rule_is(&changed.head, &list.rules[i]));
		}
		whole.head.nlmsg_type = RTM_DELRULE;
		assert_false(rule_is(&whole.head, &list.rules[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_network_is_an_address_and_its_bits),
		cmocka_unit_test(what_is_no_network_changes_nothing),
		cmocka_unit_test(a_broker_says_one_of_four_things),
		cmocka_unit_test(rules_stand_in_the_order_of_their_priorities),
		cmocka_unit_test(each_rule_is_itself_and_no_other),
		cmocka_unit_test(a_rule_with_more_to_it_is_another),
		cmocka_unit_test(a_rule_that_is_cut_or_changed_is_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
