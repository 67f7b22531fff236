/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ports of sessions: used again oldest first, so that a stale sandbox does not meet a new session.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Below what the kernel gives to connections by default (ip_local_port_range). */
#define SESSION_PORTS_FIRST 20000
#define SESSION_PORTS_COUNT 12768

struct session_ports {
	uint16_t free[SESSION_PORTS_COUNT]; /* longest free first */
	size_t count;
	bool is_free[SESSION_PORTS_COUNT]; /* by number */
};

/* All are free; the first to be taken is the one `offset` behind SESSION_PORTS_FIRST. */
void session_ports_init(struct session_ports *ports, uint32_t offset);
/* The port that has been free for the longest; 0: there is none. */
NODISCARD uint16_t session_ports_take(struct session_ports *ports);
/* One that was asked for by number is in use, whether it is one of these or not. */
void session_ports_claim(struct session_ports *ports, uint16_t port);
/* It is free again. One that is not of these is left alone. */
void session_ports_give(struct session_ports *ports, uint16_t port);
