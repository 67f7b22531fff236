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
