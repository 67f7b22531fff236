/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session that a run holds: opened before the sandbox, pinned to it, opened again on the same address
 * and port when the broker comes back, closed after the sandbox.
 */
#pragma once

#include "broker/base/compiler.h"

#include <jansson.h>
#include <stdbool.h>

struct broker_client;
struct err;
struct lease;
struct loop;
struct secret;

/*
 * How long a broker that went away is waited for, and how often it is asked meanwhile. A door waits for it
 * for the shorter time, and no longer.
 */
#define LEASE_RETRY_MS 30000
#define LEASE_INSIDE_RETRY_MS 10000
#define LEASE_RETRY_EVERY_MS 250

enum lease_state {
	LEASE_OPENING,
	LEASE_ATTACHING, /* an inside session is there, its door is not yet */
	LEASE_OPEN,
	LEASE_RETRYING, /* the broker is away */
	LEASE_LOST,	/* for good; lease_failure() says why */
};

/*
 * Starts opening a session; the request (what POST takes, without "lease" and "door") is copied. The caller
 * turns the loop and looks at the state.
 */
NODISCARD struct lease *lease_new(struct loop *loop, struct broker_client *client,
				  const json_t *request);
/* Ends the session. NULL is fine. */
void lease_free(struct lease *lease);

enum lease_state lease_state(const struct lease *lease);
/* Of a lost one: the exit status, with a text. */
int lease_failure(const struct lease *lease, struct err *err);

/* The session as it was last opened; NULL before. Borrowed. */
const json_t *lease_session(const struct lease *lease);

/* What a door needs to attach, once an inside session is there. Borrowed. */
struct lease_door {
	const char *directory; /* of the broker's socket */
	const struct secret *ticket;
};

const struct lease_door *lease_door(const struct lease *lease);

/*
 * Names the sandbox's addresses, once: of this session, and of those that follow it. A refusal makes the
 * lease lost.
 */
void lease_pin(struct lease *lease, json_t *addresses);
/* The broker knows the addresses. */
bool lease_pinned(const struct lease *lease);
