/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As much of rtnetlink as the door needs. Nothing is allocated.
 */
#pragma once

#include "broker/base/compiler.h"

#include <linux/rtnetlink.h>
#include <stdint.h>

struct nl_request {
	struct nlmsghdr head;
	char rest[248]; /* the fixed part, and attributes */
	size_t attributes;
};

/* Starts a message with its fixed part. */
void nl_begin(struct nl_request *request, uint16_t type, const void *fixed, size_t size);

/* Appends an attribute. Both must fit: the caller knows its sizes. */
void nl_put(struct nl_request *request, uint16_t type, const void *data, size_t size);

/* The attribute behind `a`, or the first one (NULL) behind a fixed part of `size` bytes; NULL: none. */
const struct rtattr *nl_next(const struct nlmsghdr *message, size_t size, const struct rtattr *a);

#define NL_NEW (NLM_F_CREATE | NLM_F_EXCL)

/* Sends it, with the flags of its type (NL_NEW, or none), and waits until it is done. -1: errno. */
NODISCARD int nl_ask(int fd, struct nl_request *request, uint16_t flags);

/* Is shown each message of a dump; NULL: the dump begins, or begins again because things have changed. */
typedef void nl_show(void *ctx, const struct nlmsghdr *message);

/* Shows everything of a type and a family. -1: errno. */
NODISCARD int nl_dump(int fd, uint16_t type, uint8_t family, nl_show *show, void *ctx);
