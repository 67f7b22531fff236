/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Google's Security Token Service: a token of somebody else's for one of Google's (RFC 8693).
 */
#pragma once

#include "broker/base/compiler.h"
#include "broker/google/failure.h"

#include <stdint.h>

struct http_client;
struct secret;
struct sts_call;

struct sts_exchange {
	const char *endpoint; /* "https://sts.googleapis.com"; "/v1/token" is added */
	const char *audience;
	const char *scope;
	const char *subject_token_type;
	const struct secret *subject_token;
	const char *client_id; /* with client_secret: HTTP Basic; NULL: none */
	const struct secret *client_secret;
	/* userProject of a workforce pool, a project's id of at most 63 bytes; NULL: none */
	const char *user_project;
};

struct sts_token {
	struct secret *access_token; /* borrowed for the time of the callback */
	int64_t life_s;		     /* from the moment the request was sent; > 0 */
};

/* Exactly one of token and failure is not NULL. */
typedef void sts_done(void *ctx, const struct sts_token *token, const struct failure *failure);

NODISCARD struct sts_call *sts_exchange_start(struct http_client *client,
					      const struct sts_exchange *exchange, sts_done *done,
					      void *ctx);
/* Ends it without the callback. NULL is fine. */
void sts_call_cancel(struct sts_call *call);
