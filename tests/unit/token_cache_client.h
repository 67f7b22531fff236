/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who asks a token cache for tokens. Every answer is held against the fixture's ledger, in every test:
 * whether it may be given, at this moment, with these fields.
 */
#pragma once

#include "tests/unit/token_cache_fixture.h"

/* Somebody who asks. Zeroed to begin with; may ask again once answered. */
struct client {
	struct token_wait wait;
	struct subject *subject;
	bool waiting;
	unsigned answers; /* ever */
	int64_t arrived_ms;
	int64_t limit_ms; /* it may be answered no later, where mints hang */
	int64_t answered_ms;

	enum token_status status;
	char token[TOKEN_TEXT_SIZE];
	int64_t expires_in_s;
	enum failure_public why;
	char ref[TOKEN_REF_SIZE];
	int64_t retry_after_s;

	/* Called at the end of the callback of a wait. */
	void (*then)(struct client *client, const struct token_answer *answer);
	void *then_ctx;
};

/* Mints, and lets pass what makes `left_ms` of it. May be called on a fresh subject only. */
void subject_age_to(struct subject *subject, int64_t left_ms);

void client_ask(struct client *client, struct subject *subject);
/* The same for a request that arrived at arrived_ms. */
void client_ask_since(struct client *client, struct subject *subject, int64_t arrived_ms);
void client_cancel(struct client *client);

/* Each fails the test unless the last answer was of that kind. */
void expect_token(const struct client *client, int64_t expires_in_s);
void expect_status(const struct client *client, enum token_status status);
void expect_retry_after(const struct client *client, int64_t seconds);
