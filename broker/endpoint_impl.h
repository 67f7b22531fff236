/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of an endpoint. Private to endpoint.c, endpoint_serve.c and endpoint_trail.c.
 */
#pragma once

#include "broker/base/list.h"
#include "broker/base/timer.h"
#include "broker/endpoint.h"
#include "broker/rate.h"
#include "broker/recipe/recipe.h"
#include "broker/refusal_log.h"
#include "broker/token_cache.h"

struct http_handler;
struct http_listener;
struct http_request;
struct secret;

struct endpoint {
	struct endpoint_context context;
	struct profile *profile;
	struct token_entry *tokens; /* NULL: the profile's */
	char *session;
	char *label;
	struct http_listener *listeners[ENDPOINT_MAX_SOCKETS];
	size_t listener_count;
	void (*lost)(void *ctx);
	void *lost_ctx;
	struct address address;
	struct admission admission;
	struct rate rate;
	struct list unpinned; /* requests that wait for the pin */
	struct list queue;    /* that wait for the rate */
	struct list pending;  /* that wait for a token */
	struct timer queue_timer;
	struct pending *spare;
	struct refusal_log *refusals;
	struct secret *served; /* the token that the audit trail knows was given */
	struct timer counts_timer;
	struct endpoint_counts counts;
};

/* A request that could not be answered at once. */
struct pending {
	struct list link; /* of one of the endpoint's lists */
	struct endpoint *endpoint;
	struct profile *profile; /* the one it began with */
	struct http_request *request;
	struct recipe_verdict verdict;
	struct recipe_verdict as_stranger; /* the verdict if its peer turns out to be another */
	struct timer timer;		   /* of the wait for the pin */
	struct token_wait wait;
};

/* endpoint_serve.c */
extern const struct http_handler endpoint_handler;
/* The pin is there: what waited for it goes on. */
void endpoint_pinned(struct endpoint *endpoint);

/* endpoint_trail.c */
void trail_count(struct endpoint *endpoint, struct profile *profile, const char *route,
		 unsigned status);
void trail_refusal(struct endpoint *endpoint, struct profile *profile,
		   const struct refusal *refusal, const struct address *peer);
/* The first time that a token is given here is written before it is given. -1: it must not be given. */
NODISCARD int trail_serve(struct endpoint *endpoint, const struct profile *profile,
			  const struct address *peer, const struct token_answer *answer);
/* Writes the counts, if any changed since the last time. */
void trail_flush(struct endpoint *endpoint);
