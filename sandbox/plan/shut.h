/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addresses outside that a door keeps its sandbox from: where clouds answer with credentials of the
 * host. A nameserver of the engine's host among them stays reachable at port 53.
 */
#pragma once

#include "broker/base/compiler.h"

struct err;
struct strv;

/* Networks that a list may have: each is a rule of the kernel's. */
#define SHUT_MAX 32

/* One network, "169.254.0.0/16" or an address. ERR_USAGE. */
NODISCARD int shut_check(const char *cidr, struct err *err);

/* Checked ones together: they must hold the metadata addresses themselves. ERR_USAGE. */
NODISCARD int shut_check_list(const struct strv *list, struct err *err);

/* The list that holds without --shut, into a zeroed one. */
void shut_default(struct strv *list);

/* Adds those nameservers to `kept` that lie in the list, the metadata address, which is kept anyway, left out. */
void shut_keep_nameservers(const struct strv *list, const struct strv *nameservers,
			   struct strv *kept);
