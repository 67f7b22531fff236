/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GCE metadata server's protocol: a request in, a reply out. Pure: no descriptor, no clock, no
 * network. The route table is fixed and closed; what is not in it does not exist. This header is the
 * whole interface.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct emulator;
struct secret;
struct strv;

/* What an endpoint shows of its profile. */
struct emulator_identity {
	const char *email;
	const char *project;
	const char *project_number; /* decimal; NULL: the route is not in the table */
	const char *universe_domain;
	const struct strv *scopes;
	/* A name that Host may give besides the fixed ones; NULL: none. */
	const char *advertised_host;
};

/* A header as it came. Neither part is NUL-terminated; a value may end in blanks. */
struct emulator_header {
	const char *name;
	size_t name_len;
	const char *value;
	size_t value_len;
};

struct emulator_request {
	const char *method; /* NUL-terminated */
	const char *target; /* raw bytes of the request line, path and query */
	size_t target_len;
	const struct emulator_header *headers;
	size_t header_count;
	const char *local_ip; /* the connection's own local address: "172.17.0.1", "::1" */
	bool malformed;	      /* the head is not plain HTTP */
	bool has_body;	      /* Content-Length above 0, or any Transfer-Encoding */
	bool peer_refused;    /* the peer may not use this endpoint */
};

/* Closed sets: labels of metrics and audit. */
enum emulator_route {
	EMULATOR_ROUTE_NONE, /* refused before, or not in the table */
	EMULATOR_ROUTE_DIRECTORY,
	EMULATOR_ROUTE_PROJECT_ID,
	EMULATOR_ROUTE_PROJECT_NUMBER,
	EMULATOR_ROUTE_UNIVERSE_DOMAIN,
	EMULATOR_ROUTE_ACCOUNT, /* the account's directory, recursive or not */
	EMULATOR_ROUTE_EMAIL,
	EMULATOR_ROUTE_ALIASES,
	EMULATOR_ROUTE_SCOPES,
	EMULATOR_ROUTE_TOKEN,
	EMULATOR_ROUTE_COUNT,
};

enum emulator_refusal {
	EMULATOR_REFUSAL_NONE,
	EMULATOR_REFUSAL_MALFORMED,
	EMULATOR_REFUSAL_BODY,
	EMULATOR_REFUSAL_PEER,
	EMULATOR_REFUSAL_FORWARDED,
	EMULATOR_REFUSAL_HOST,
	EMULATOR_REFUSAL_FLAVOR,
	EMULATOR_REFUSAL_PATH,
	EMULATOR_REFUSAL_METHOD,
	EMULATOR_REFUSAL_COUNT,
};

const char *emulator_route_name(enum emulator_route route);
const char *emulator_refusal_name(enum emulator_refusal refusal);

/*
 * A reply. Strings are constants or borrowed from the emulator, which must outlive it. The headers that
 * every reply carries are emulator_common_headers(), not repeated here.
 */
struct emulator_reply {
	unsigned status;
	const char *content_type;
	const char *body;
	size_t body_len;
	const char *allow; /* the Allow header; NULL: none */
	bool close;	   /* the connection ends with this reply */
	enum emulator_route route;
	enum emulator_refusal refusal;
};

/* Headers of every reply besides Content-Type, Content-Length and Date: name, value pairs, NULL last. */
const char *const *emulator_common_headers(void);

/* The identity is copied. */
NODISCARD struct emulator *emulator_new(const struct emulator_identity *identity);
/* NULL is fine. */
void emulator_free(struct emulator *emulator);

/*
 * Judges and answers a request, in the contract's order of checks: malformed, body, peer,
 * X-Forwarded-For, Host, Metadata-Flavor, path, method. Returns true with the whole reply, or false
 * where the request is for a token: then only route is set, and the caller asks its token source and
 * fills the reply by one of the two functions below.
 */
bool emulator_answer(const struct emulator *emulator, const struct emulator_request *request,
		     struct emulator_reply *reply);

/* The 200 of `token`. The body is written to `out` (sensitive); expires_in_s > 0. */
void emulator_token_reply(const struct secret *token, int64_t expires_in_s, struct buf *out,
			  struct emulator_reply *reply);

/*
 * The refusal of `token`: 503 for now or 403 for good, with `description` (of the fixed list) and the
 * eight hex digits `ref`. The body is written to `out`.
 */
void emulator_token_refusal(bool for_now, const char *description, const char *ref, struct buf *out,
			    struct emulator_reply *reply);
