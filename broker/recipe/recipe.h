/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a backend's credential reaches a sandbox over HTTP. A recipe judges requests and words answers;
 * tokens it is given. One file a backend behind one table.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_request;
struct http_response;
struct http_server;
struct recipe;
struct secret;
struct strv;

/* What a profile grants, as far as a recipe shows it. */
struct recipe_grant {
	const char *service_account;
	const char *project;
	const char *project_number; /* NULL: not shown */
	const char *universe_domain;
	const char *advertise_host;
	const struct strv *scopes;
};

/* What is to become of a request. Names are of closed sets: labels of metrics and audit. */
struct recipe_verdict {
	const struct http_response *response; /* borrowed from the recipe; NULL: it wants a token */
	unsigned status;		      /* of the response */
	const char *route;
	const char *refusal; /* NULL: none */
	bool spoken_well;    /* it passed every check but perhaps those of path and method */
};

struct recipe_token {
	struct secret *token; /* NULL: there is none, and the rest says why */
	int64_t expires_in_s; /* > 0 */
	bool for_now;
	const char *description; /* of the fixed list of the contract */
	const char *ref;
	int64_t retry_after_s;
};

struct recipe_backend {
	const char *name;
	/* Headers of every answer on an endpoint: name, value, …, NULL. */
	const char *const *(*headers)(void);
	/*
	 * Where its clients look by themselves, and an endpoint inside a sandbox listens: "ADDR:PORT", IPv4
	 * first, then IPv6, NULL. The port is the one that `environment` leaves out.
	 */
	const char *const *inside;
	/* The grant is copied. */
	struct recipe *(*open)(struct http_server *server, const struct recipe_grant *grant);
	void (*close)(struct recipe *recipe);
	/*
	 * Calls `set` for each variable by which a sandbox finds the endpoint, which is HOST:PORT, or
	 * HOST alone for port 80.
	 */
	void (*environment)(const char *endpoint, const char *host,
			    void (*set)(void *ctx, const char *name, const char *value), void *ctx);
	/* Judges a request while it is handed over. */
	void (*judge)(struct recipe *recipe, const struct http_request *request, bool peer_refused,
		      struct recipe_verdict *verdict);
	/* Answers a request that wanted a token. Returns the status. */
	unsigned (*give)(struct recipe *recipe, struct http_request *request,
			 const struct recipe_token *token);
};

/* The backend of that name, or NULL. */
const struct recipe_backend *recipe_find(const char *name);

/* vertex.c */
extern const struct recipe_backend recipe_vertex;
