/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses and policy rules of the sandbox's network namespace.
 */
#pragma once

#include "sandbox/door/endpoint.h"

struct door_options;

/*
 * Looks at everything before it changes anything; then puts the walls up, adds the addresses and opens DNS.
 * Tells what lo has of IPv6. Ends the process on failure.
 */
enum ipv6 network_set_up(const struct door_options *options);
