/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A TCP address on which one profile is served: who may speak there, how fast, and what becomes of each
 * request.
 */
#pragma once

#include "broker/base/compiler.h"
#include "broker/net/address.h"

#include <stdbool.h>

struct audit;
struct bridges;
struct endpoint;
struct err;
struct http_server;
struct profile;
struct timer_queue;

/* What endpoints have in common; must outlive them. */
struct endpoint_context {
	struct http_server *server;
	struct timer_queue *timers;
	struct bridges *bridges;
	struct audit *audit;
};

/*
 * Binds the profile's `listen` address and listens; nothing is accepted before the loop turns. The
 * endpoint references the profile. Errors name the address and the repair.
 */
NODISCARD int endpoint_open(const struct endpoint_context *context, struct profile *profile,
			    struct endpoint **out, struct err *err);
/* Answers what waits, and closes. NULL is fine. */
void endpoint_close(struct endpoint *endpoint);

/* New requests get the new profile; those that wait end with the one they began with. */
void endpoint_set_profile(struct endpoint *endpoint, struct profile *profile);
void endpoint_set_audit(struct endpoint *endpoint, struct audit *audit);

struct profile *endpoint_profile(const struct endpoint *endpoint);
/* With the real port. */
const struct address *endpoint_address(const struct endpoint *endpoint);
/* As it was asked for: port 0 stays 0. */
const struct address *endpoint_wanted(const struct endpoint *endpoint);
