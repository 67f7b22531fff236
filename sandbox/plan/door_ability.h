/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether an endpoint inside the sandbox can be had here, or one at the gateway behind the host's rules. What
 * cannot is an error that says what to do, never a weaker run.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stdbool.h>

struct engine_facts;
struct err;

/* The first Linux with a cookie for each network namespace, by which the broker tells them apart. */
#define DOOR_KERNEL_MAJOR 5
#define DOOR_KERNEL_MINOR 14

/*
 * By what was read from the engine, for a sandbox on `network` (NULL: the engine's default).
 * ERR_UNSUPPORTED, with the way out and what is lost by it.
 */
NODISCARD int door_check_ability(const struct engine_facts *engine, const char *network,
				 struct err *err);

/*
 * The same for an endpoint at the gateway: macvlan and ipvlan put packets on the wire past the rules that keep
 * containers from the cloud's metadata server.
 */
NODISCARD int gateway_check_ability(const struct engine_facts *engine, const char *network,
				    struct err *err);

/* Whether containers of this runtime share the host's network stack: known by name alone. */
bool door_runtime_is_known(const char *runtime);
