/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listening sockets: non-blocking, closed on exec.
 */
#pragma once

#include "broker/base/compiler.h"

struct address;
struct err;

/*
 * Binds and listens. IPv6 sockets take no IPv4. The address need not be there yet: a bridge may be made
 * after the broker starts. On success *address has the real port and *out is the
 * caller's; errors name the address and the repair.
 */
NODISCARD int listen_tcp(struct address *address, int *out, struct err *err);
