/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/door/rules.h"

#include "sandbox/door/netlink.h"

#include <linux/fib_rules.h>
#include <netinet/in.h>
#include <string.h>

/* Newer than Debian 12's headers; recent kernels tell it with every port. */
#define DPORT_MASK 29
#define FIXED sizeof(struct fib_rule_hdr)

static const struct cidr METADATA = {.address = {169, 254, 169, 254},
				     .family = AF_INET,
				     .bits = 32};

static void add(struct rule_list *list, struct rule rule)
{
	rule.origin = RTPROT_STATIC;
	list->rules[list->count++] = rule;
}

static void add_kernels(struct rule_list *list, uint8_t family, uint32_t priority, uint32_t table)
{
	list->rules[list->count++] = (struct rule){.to.family = family,
						   .priority = priority,
						   .table = table,
						   .origin = RTPROT_KERNEL,
						   .is_there = true};
}

/* Lets DNS out, for the namespace's own packets: without iif lo it would be forwarded for neighbours. */
static void add_resolver(struct rule_list *list, uint32_t priority, const struct cidr *to)
{
	struct rule rule = {.to = *to,
			    .priority = priority,
			    .table = RT_TABLE_MAIN,
			    .port = 53,
			    .ip_protocol = IPPROTO_UDP,
			    .iif_lo = true};

	add(list, rule);
	rule.priority++;
	rule.ip_protocol = IPPROTO_TCP;
	add(list, rule);
}

void rules_make(uint8_t family, const struct door_options *options, struct rule_list *out)
{
	const bool is_v4 = family == AF_INET;
	uint32_t priority = 4; /* of what the command line names */

	out->count = 0;
	add_kernels(out, family, 0, RT_TABLE_LOCAL);
	if (is_v4) {
		add_resolver(out, 1, &METADATA);
		add(out,
		    (struct rule){.to.family = family, .priority = 3, .table = RT_TABLE_LOCAL});
	}
	for (size_t i = 0; i < options->dns.count; i++) {
		if (options->dns.cidrs[i].family == family)
			add_resolver(out, priority, &options->dns.cidrs[i]);
		priority += 2 * (options->dns.cidrs[i].family == family);
	}
	for (size_t i = 0; i < options->shut.count; i++) {
		if (options->shut.cidrs[i].family == family)
			add(out, (struct rule){.to = options->shut.cidrs[i], .priority = priority});
		priority += options->shut.cidrs[i].family == family;
	}
	/*
	 * Never reached: it makes the kernel read the ports of what arrives, which a rule with iif lo does not
	 * (fib_rule_requires_fldissect). Without it the answers of DNS are dropped as martians.
	 */
	if (is_v4)
		add(out, (struct rule){.to = METADATA,
				       .priority = priority,
				       .port = 53,
				       .ip_protocol = IPPROTO_UDP});
	add_kernels(out, family, 32766, RT_TABLE_MAIN);
	if (is_v4)
		add_kernels(out, family, 32767, RT_TABLE_DEFAULT);
}

void rule_write(struct nl_request *request, uint16_t type, const struct rule *rule)
{
	const struct fib_rule_hdr fixed = {.family = rule->to.family,
					   .dst_len = rule->to.bits,
					   .table = (uint8_t)rule->table,
					   .action = rule->table ? FR_ACT_TO_TBL : FR_ACT_PROHIBIT};
	const struct fib_rule_port_range ports = {.start = rule->port, .end = rule->port};

	nl_begin(request, type, &fixed, sizeof(fixed));
	nl_put(request, FRA_TABLE, &rule->table, sizeof(rule->table));
	nl_put(request, FRA_PROTOCOL, &rule->origin, sizeof(rule->origin));
	if (rule->priority)
		nl_put(request, FRA_PRIORITY, &rule->priority, sizeof(rule->priority));
	if (rule->to.bits)
		nl_put(request, FRA_DST, rule->to.address, rule->to.family == AF_INET ? 4 : 16);
	if (rule->iif_lo)
		nl_put(request, FRA_IIFNAME, "lo", sizeof("lo"));
	if (rule->port) {
		nl_put(request, FRA_IP_PROTO, &rule->ip_protocol, sizeof(rule->ip_protocol));
		nl_put(request, FRA_DPORT_RANGE, &ports, sizeof(ports));
	}
}

/* What the kernel adds to every rule, or to every port, that has no such condition. */
static bool says_nothing(const struct rtattr *a)
{
	static const struct {
		uint16_t type;
		uint16_t size;
	} whole[] = {{FRA_SUPPRESS_PREFIXLEN, 4}, {DPORT_MASK, 2}};

	for (size_t i = 0; i < ARRAY_LEN(whole); i++) {
		if (a->rta_type == whole[i].type && RTA_PAYLOAD(a) == whole[i].size)
			return memcmp(RTA_DATA(a), "\xff\xff\xff\xff", whole[i].size) == 0;
	}
	return false;
}

static bool has(const struct nl_request *request, const struct rtattr *a)
{
	const struct rtattr *own = NULL;

	while ((own = nl_next(&request->head, FIXED, own))) {
		if (own->rta_len == a->rta_len && memcmp(own, a, a->rta_len) == 0)
			return true;
	}
	return false;
}

bool rule_is(const struct nlmsghdr *told, const struct rule *rule)
{
	const struct rtattr *a = NULL;
	struct nl_request wanted;
	size_t found = 0;

	rule_write(&wanted, RTM_NEWRULE, rule);
	if (told->nlmsg_type != RTM_NEWRULE || told->nlmsg_len < NLMSG_SPACE(FIXED) ||
	    memcmp(NLMSG_DATA(told), wanted.rest, FIXED) != 0)
		return false;
	while ((a = nl_next(told, FIXED, a))) {
		if (has(&wanted, a))
			found++;
		else if (!says_nothing(a))
			return false;
	}
	return found == wanted.attributes;
}
