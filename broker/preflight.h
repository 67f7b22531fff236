/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Before a session is opened: would a token come?
 */
#pragma once

#include "broker/base/compiler.h"
#include "broker/google/failure.h"
#include "broker/session_wish.h"

#include <stdbool.h>

struct broker;
struct preflight_call;
struct profile;
struct token_entry;

/* The answer; strings are borrowed for the time of the callback. */
struct preflight_verdict {
	bool ok;
	enum failure_class class; /* else */
	const char *text;	  /* else: what is wrong, in words that may leave the broker */
	const char *ref;	  /* of the mint that failed; NULL: none */
};

typedef void preflight_done(void *ctx, const struct preflight_verdict *verdict);

struct preflight_request {
	enum preflight what; /* not PREFLIGHT_NONE */
	struct profile *profile;
	struct token_entry *tokens; /* where a minted token is kept */
};

/* Asks; `done` is called once, later. Profile and tokens are referenced until then. */
NODISCARD struct preflight_call *preflight_start(struct broker *broker,
						 const struct preflight_request *request,
						 preflight_done *done, void *ctx);
/* Ends it without the callback. NULL is fine. */
void preflight_cancel(struct preflight_call *call);
