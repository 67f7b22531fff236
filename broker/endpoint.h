/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A TCP address on which one profile is served: who may speak there, how fast, and what becomes of each
 * request. A profile's standing endpoint, or that of one session.
 */
#pragma once

#include "broker/admission.h"
#include "broker/base/compiler.h"
#include "broker/net/address.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct audit;
struct bridges;
struct endpoint;
struct err;
struct http_server;
struct profile;
struct timer_queue;
struct token_entry;

/* What endpoints have in common; must outlive them. */
struct endpoint_context {
	struct http_server *server;
	struct timer_queue *timers;
	struct bridges *bridges;
	struct audit *audit;
};

/* What one endpoint is for. */
struct endpoint_options {
	struct address address; /* that its socket is bound to, or, inside, its first */
	/*
	 * Inside a sandbox: its sockets come by endpoint_attach(), are shared with who opened them, and serve
	 * their own network namespace only. `lost` is called when one listens no more; the endpoint is to
	 * be closed then.
	 */
	bool inside;
	void (*lost)(void *ctx);
	void *lost_ctx;
	const char *session; /* its id; NULL: a standing endpoint */
	const char *label;   /* the session's; NULL: none */
	enum pin pin;
	struct token_entry *tokens; /* NULL: those that the profile shares */
};

struct endpoint_counts {
	uint64_t requests;
	uint64_t tokens;
	uint64_t refused;
};

/* A listening socket, and what it is bound to. */
struct endpoint_socket {
	int fd;
	struct address address;
};

#define ENDPOINT_MAX_SOCKETS 2

/* Serves a listening socket, which it takes; -1 for one inside. Profile and tokens are referenced, the strings copied. */
NODISCARD int endpoint_open(const struct endpoint_context *context, struct profile *profile,
			    const struct endpoint_options *options, int takes_fd,
			    struct endpoint **out, struct err *err);
/* Serves the sockets of one inside from now on, once. Takes them, also on failure. */
NODISCARD int endpoint_attach(struct endpoint *endpoint,
			      const struct endpoint_socket *takes_sockets, size_t count,
			      struct err *err);
/* Answers what waits, and closes; `last`, unless NULL, gets the counts. A NULL endpoint is fine. */
void endpoint_close(struct endpoint *endpoint, struct endpoint_counts *last);

/* New requests get the new profile; those that wait end with the one they began with. */
void endpoint_set_profile(struct endpoint *endpoint, struct profile *profile);
void endpoint_set_audit(struct endpoint *endpoint, struct audit *audit);

/* From now on these addresses and no other may speak; what waited for it goes on or is refused. */
void endpoint_pin(struct endpoint *endpoint, const struct address *addresses, size_t count);
const struct admission *endpoint_admission(const struct endpoint *endpoint);

struct profile *endpoint_profile(const struct endpoint *endpoint);
const struct address *endpoint_address(const struct endpoint *endpoint);
void endpoint_counts(const struct endpoint *endpoint, struct endpoint_counts *counts);
