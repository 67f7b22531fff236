/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/door/egress.h"

#include "sandbox/door/exit_code.h"
#include "sandbox/door/netlink.h"
#include "sandbox/door/options.h"

#include <endian.h>
#include <errno.h>
#include <linux/in.h>
#include <linux/xfrm.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#define DNS_FIRST 1
#define WALL_THEN 2

static void see_one(void *ctx, const struct nlmsghdr *message)
{
	*(bool *)ctx |= message != NULL;
}

int egress_open(void)
{
	const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_XFRM);
	bool any = false;

	if (fd < 0 && errno == EPROTONOSUPPORT)
		return -1;
	demand(fd >= 0 && nl_dump(fd, XFRM_MSG_GETPOLICY, AF_UNSPEC, see_one, &any) == 0, EXIT_RULE,
	       "the XFRM policies cannot be looked at, which takes NET_ADMIN:");
	if (any)
		die(EXIT_ALIEN, "this network has XFRM policies already;",
		    "give the sandbox one without");
	return fd;
}

static void add(int fd, const struct cidr *to, uint8_t ip_protocol)
{
	struct xfrm_userpolicy_info policy = {
		.sel = {.family = AF_INET, .prefixlen_d = to->bits, .proto = ip_protocol},
		.lft = {XFRM_INF, XFRM_INF, XFRM_INF, XFRM_INF, 0, 0, 0, 0},
		.priority = ip_protocol ? DNS_FIRST : WALL_THEN,
		.dir = XFRM_POLICY_OUT,
		.action = ip_protocol ? XFRM_POLICY_ALLOW : XFRM_POLICY_BLOCK,
	};
	struct nl_request request;

	memcpy(&policy.sel.daddr.a4, to->address, sizeof(policy.sel.daddr.a4));
	if (ip_protocol) {
		policy.sel.dport = htobe16(53);
		policy.sel.dport_mask = UINT16_MAX;
	}
	/* Where the same is given twice, the second counts. */
	nl_begin(&request, XFRM_MSG_UPDPOLICY, &policy, sizeof(policy));
	demand(nl_ask(fd, &request, 0) == 0, EXIT_RULE, "an XFRM policy cannot be added:");
}

static void add_resolver(int fd, const struct cidr *to)
{
	add(fd, to, IPPROTO_UDP);
	add(fd, to, IPPROTO_TCP);
}

void egress_shut(int fd, const struct door_options *options)
{
	static const struct cidr metadata = {{169, 254, 169, 254}, AF_INET, 32};

	for (size_t i = 0; i < options->shut.count; i++) {
		if (options->shut.cidrs[i].family == AF_INET)
			add(fd, &options->shut.cidrs[i], 0);
	}
	add_resolver(fd, &metadata);
	for (size_t i = 0; i < options->dns.count; i++) {
		if (options->dns.cidrs[i].family == AF_INET)
			add_resolver(fd, &options->dns.cidrs[i]);
	}
	close(fd);
}
