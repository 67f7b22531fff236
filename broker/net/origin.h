/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a URL that names a server: "https://HOST" or "https://HOST:PORT", http likewise.
 */
#pragma once

#include "broker/base/compiler.h"
#include "broker/net/address.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Checks that a URL is an origin and nothing more; one slash at the end is tolerated. *out is the
 * caller's, without that slash. -1 where it is not; *reason then says what it holds that it may not,
 * or is NULL where there is no more to say.
 */
NODISCARD int origin_parse(const char *url, char **out, const char **reason);

/* HOST or HOST:PORT: a name, an IPv4 address, or an IPv6 address in brackets; the port from 1. */
bool text_is_host_port(const char *text);

/*
 * The addresses that such a text names without a resolver: one of a literal, two of localhost, none of
 * another name. `port` counts where the text has none. Returns how many.
 */
size_t host_port_addresses(const char *text, uint16_t port, struct address out[static 2]);

/* The port of such a text; `port` where it has none. */
uint16_t host_port_port(const char *text, uint16_t port);

/* Of a parsed origin. */
bool origin_is_plain(const char *origin);
/* True for localhost and the literal loopback addresses; no resolver is asked. */
bool origin_is_loopback(const char *origin);
