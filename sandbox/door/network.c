/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/door/network.h"

#include "sandbox/door/egress.h"
#include "sandbox/door/exit_code.h"
#include "sandbox/door/netlink.h"
#include "sandbox/door/rules.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_addr.h>
#include <string.h>
#include <sys/socket.h>

#define DISABLE_IPV6 "/proc/sys/net/ipv6/conf/lo/disable_ipv6"

struct comparison {
	const struct rule_list *expected;
	size_t next;
	bool differs;
};

static void compare(void *ctx, const struct nlmsghdr *message)
{
	struct comparison *const c = ctx;
	const struct rule_list *const expected = c->expected;

	if (!message) {
		*c = (struct comparison){.expected = expected};
		return;
	}
	while (c->next < expected->count && !expected->rules[c->next].is_there)
		c->next++;
	if (c->next == expected->count || !rule_is(message, &expected->rules[c->next]))
		c->differs = true;
	else
		c->next++;
}

/* What the kernel tells is, in its order, what is marked as there. */
static void compare_rules(int fd, const struct rule_list *expected)
{
	struct comparison c = {.expected = expected};
	const uint8_t family = expected->rules->to.family;

	demand(nl_dump(fd, RTM_GETRULE, family, compare, &c) == 0, EXIT_RULE,
	       "the policy rules cannot be looked at:");
	while (c.next < expected->count)
		c.differs |= expected->rules[c.next++].is_there;
	if (c.differs)
		die(EXIT_ALIEN,
		    "this network has policy rules that are neither the kernel's own nor as the door",
		    "asked for; give the sandbox a network without such rules");
}

/* Walls before openings: what prohibits, then the look-up of local addresses, then DNS. */
static int turn_of(const struct rule *rule)
{
	if (!rule->table)
		return 0;
	return rule->port ? 2 : 1;
}

static void add_rules(int fd, struct rule_list *list)
{
	for (int turn = 0; turn < 3; turn++) {
		for (size_t i = 0; i < list->count; i++) {
			struct rule *const rule = &list->rules[i];
			struct nl_request request;

			if (rule->is_there || turn != turn_of(rule))
				continue;
			rule_write(&request, RTM_NEWRULE, rule);
			demand(nl_ask(fd, &request, NL_NEW) == 0, EXIT_RULE,
			       "a policy rule cannot be added:");
			rule->is_there = true;
		}
	}
	compare_rules(fd, list);
}

/* The one step that opens DNS: till then the kernel's first rule keeps the door's in its shadow. */
static void delete_first_rule(int fd, struct rule_list *list)
{
	struct nl_request request;

	rule_write(&request, RTM_DELRULE, list->rules);
	demand(nl_ask(fd, &request, 0) == 0, EXIT_RULE, "a policy rule cannot be deleted:");
	list->rules->is_there = false;
	compare_rules(fd, list);
}

static void look_for_ours(void *ctx, const struct nlmsghdr *message)
{
	const struct rtattr *a = NULL;

	while (message && (a = nl_next(message, sizeof(struct ifaddrmsg), a))) {
		for (size_t i = 0; i < ARRAY_LEN(ENDPOINTS); i++) {
			if ((a->rta_type == IFA_LOCAL || a->rta_type == IFA_ADDRESS) &&
			    RTA_PAYLOAD(a) == ENDPOINTS[i].size &&
			    memcmp(RTA_DATA(a), ENDPOINTS[i].address, ENDPOINTS[i].size) == 0)
				*(bool *)ctx = true;
		}
	}
}

/* On no interface, whatever its prefix: EEXIST knows equal prefixes only. */
static void demand_no_address(int fd)
{
	bool found = false;

	demand(nl_dump(fd, RTM_GETADDR, AF_UNSPEC, look_for_ours, &found) == 0, EXIT_ADDRESS,
	       "the addresses cannot be looked at:");
	if (found)
		die(EXIT_TAKEN,
		    "the metadata address is in this network already, another door's or the host's;",
		    "give the sandbox a network of its own");
}

static void add_address(int fd, const struct endpoint *endpoint)
{
	const struct ifaddrmsg fixed = {
		.ifa_family = endpoint->family,
		.ifa_prefixlen = (uint8_t)(endpoint->size * 8),
		.ifa_flags = endpoint->family == AF_INET6 ? IFA_F_NODAD : 0,
		.ifa_scope = RT_SCOPE_HOST,
		.ifa_index = 1, /* lo, in every namespace */
	};
	struct nl_request request;
	bool added;

	nl_begin(&request, RTM_NEWADDR, &fixed, sizeof(fixed));
	nl_put(&request, IFA_LOCAL, endpoint->address, endpoint->size);
	nl_put(&request, IFA_ADDRESS, endpoint->address, endpoint->size);
	added = nl_ask(fd, &request, NL_NEW) == 0;
	demand(added, errno == EEXIST ? EXIT_TAKEN : EXIT_ADDRESS,
	       "the metadata address cannot be added to lo, which takes NET_ADMIN:");
}

static enum ipv6 look_at_ipv6(void)
{
	AUTO_CLOSE const int fd = open(DISABLE_IPV6, O_RDONLY | O_CLOEXEC);
	char value = '1';

	if (fd < 0 && errno == ENOENT)
		return IPV6_ABSENT;
	demand(fd >= 0 && read(fd, &value, 1) == 1, EXIT_ADDRESS, DISABLE_IPV6 ":");
	return value == '0' ? IPV6_ON : IPV6_OFF;
}

enum ipv6 network_set_up(const struct door_options *options)
{
	AUTO_CLOSE const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	const enum ipv6 ipv6 = look_at_ipv6();
	struct rule_list v4, v6;
	int egress;

	demand(fd >= 0, EXIT_ADDRESS, "netlink cannot be had:");
	rules_make(AF_INET, options, &v4);
	rules_make(AF_INET6, options, &v6);
	demand_no_address(fd);
	compare_rules(fd, &v4);
	if (ipv6 != IPV6_ABSENT)
		compare_rules(fd, &v6);
	egress = egress_open();
	/* Everything was looked at. The address is the lock against a second door. */
	add_address(fd, &ENDPOINTS[0]);
	if (egress >= 0)
		egress_shut(egress, options);
	add_rules(fd, &v4);
	delete_first_rule(fd, &v4);
	/* Over IPv6 the kernel's first rule stays. The walls are for a network that is connected later, too. */
	if (ipv6 != IPV6_ABSENT)
		add_rules(fd, &v6);
	if (ipv6 == IPV6_ON)
		add_address(fd, &ENDPOINTS[1]);
	return ipv6;
}
