/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The IAM Service Account Credentials API: generateAccessToken, over REST.
 */
#pragma once

#include "broker/base/compiler.h"
#include "broker/google/failure.h"

#include <stdbool.h>
#include <stdint.h>

struct clock;
struct http_client;
struct iam_call;
struct secret;
struct strv;

struct iam_token_request {
	const char *endpoint; /* "https://iamcredentials.googleapis.com": scheme, host and port */
	const char *service_account;
	const struct strv *scopes;    /* exactly these, at least one */
	const struct strv *delegates; /* plain e-mail addresses, in order; may be empty */
	int64_t lifetime_s;
	const char *quota_project; /* NULL: none */
	const struct secret *source_token;
	bool of_source; /* a token of the source's own: a failure is one of that step */
};

struct iam_token {
	struct secret *token; /* borrowed for the time of the callback */
	/* expireTime minus the answer's Date (our wall clock where there is none), capped by lifetime_s. */
	int64_t life_ms;
	int64_t skew_s; /* our wall clock minus the server's; 0 where it sent no Date */
};

/* Exactly one of token and failure is not NULL. */
typedef void iam_done(void *ctx, const struct iam_token *token, const struct failure *failure);

/*
 * NULL, and no callback, where service_account or a delegate is no e-mail address or a scope is not
 * UTF-8: the configuration has refused those, and what cannot be asked for exactly is not asked for.
 */
NODISCARD struct iam_call *iam_generate_access_token(struct http_client *client,
						     const struct clock *clock,
						     const struct iam_token_request *request,
						     iam_done *done, void *ctx);
/* Ends it without the callback. NULL is fine. */
void iam_call_cancel(struct iam_call *call);
