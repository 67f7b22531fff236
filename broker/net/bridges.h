/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The networks on which this host's containers live: subnets of bridges that have no physical port.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stdbool.h>

struct address;
struct bridges;
struct clock;

NODISCARD struct bridges *bridges_new(const struct clock *clock);
/* NULL is fine. */
void bridges_free(struct bridges *bridges);

/*
 * True where the address is in such a subnet and not one of the host's own. What the host has is read
 * anew at most once a second, so a network that a container engine makes is known soon.
 */
bool bridges_contain(struct bridges *bridges, const struct address *address);

/* True where the address is one of the host's own. */
bool bridges_own(struct bridges *bridges, const struct address *address);

/* True where it is the host's own address on such a bridge. */
bool bridges_serve(struct bridges *bridges, const struct address *address);

/* The address of the interface of that name, IPv4 where it has one. -1 where there is none. */
NODISCARD int bridges_address_of(const char *interface, struct address *out);
