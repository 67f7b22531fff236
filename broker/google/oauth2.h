/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Google's OAuth2 token endpoint: the refresh grant (RFC 6749 section 6).
 */
#pragma once

#include "broker/base/compiler.h"
#include "broker/google/failure.h"

#include <stdint.h>

struct clock;
struct http_client;
struct oauth2_call;
struct secret;

struct oauth2_refresh {
	const char *
		endpoint; /* "https://oauth2.googleapis.com": scheme, host and port; "/token" is added */
	const char *client_id;
	const struct secret *client_secret;
	const struct secret *refresh_token;
};

struct oauth2_token {
	struct secret *access_token;  /* borrowed for the time of the callback */
	struct secret *refresh_token; /* a rotated one, else NULL; borrowed */
	int64_t life_s; /* from the moment the request was sent; 0: not to be cached */
	int64_t skew_s; /* our wall clock minus the server's; 0 where it sent no Date */
};

/* Exactly one of token and failure is not NULL. */
typedef void oauth2_done(void *ctx, const struct oauth2_token *token,
			 const struct failure *failure);

NODISCARD struct oauth2_call *oauth2_refresh_start(struct http_client *client,
						   const struct clock *clock,
						   const struct oauth2_refresh *refresh,
						   oauth2_done *done, void *ctx);
/* Ends it without the callback. NULL is fine. */
void oauth2_call_cancel(struct oauth2_call *call);
