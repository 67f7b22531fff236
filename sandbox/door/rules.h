/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy rules of a sandbox's namespace: what the kernel has by itself and what the door wants, in the
 * form in which netlink tells them. Pure: nothing here talks to the kernel.
 */
#pragma once

#include "sandbox/door/options.h"

#include <stdbool.h>

struct nlmsghdr;
struct nl_request;

struct rule {
	struct cidr to; /* no bits: any address; its family is the rule's */
	uint32_t priority;
	uint32_t table;	     /* 0: none, it prohibits */
	uint16_t port;	     /* destination; 0: any */
	uint8_t ip_protocol; /* with a port */
	uint8_t origin;	     /* RTPROT_KERNEL, or RTPROT_STATIC for the door's */
	bool iif_lo;	     /* only packets that the namespace itself sends */
	bool is_there;	     /* the kernel has it now */
};

/* In the order of their priorities, as the kernel tells them. */
struct rule_list {
	struct rule rules[8 + 3 * CIDRS_MAX];
	size_t count;
};

/* The kernel's, which are there, and the door's, which are not yet. */
void rules_make(uint8_t family, const struct door_options *options, struct rule_list *out);

/* Makes the message that adds or deletes one. */
void rule_write(struct nl_request *request, uint16_t type, const struct rule *rule);

/* Whether a dump's message tells exactly this one: each of its attributes, and none that is not known. */
bool rule_is(const struct nlmsghdr *told, const struct rule *rule);
