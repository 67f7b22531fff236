/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One mint: the source's own access token, then generateAccessToken. A try each, no retry here: the
 * token cache decides about those. Logs and audits how it went.
 */
#pragma once

#include "broker/base/compiler.h"
#include "broker/token_cache.h"

#include <stdint.h>

struct audit;
struct credential;
struct http_client;
struct minter;
struct timer_queue;

/* Upper bounds of the histogram of mint times, in milliseconds; a last bucket holds the rest. */
#define MINTER_BUCKETS 8
extern const int64_t minter_bucket_ms[MINTER_BUCKETS];

struct minter_stats {
	uint64_t buckets[MINTER_BUCKETS + 1];
	uint64_t count;
	int64_t total_ms;
};

struct minter_options {
	struct timer_queue *timers;
	struct http_client *client;
	const char *endpoint;	       /* of iamcredentials; borrowed */
	const char *quota_project;     /* NULL: none; borrowed */
	struct credential *credential; /* borrowed */
	struct audit *audit;	       /* borrowed */
	/* Called once for each mint that ended; may be NULL. */
	void (*ended)(void *ctx, const char *profile, bool ok);
	void *ended_ctx;
};

NODISCARD struct minter *minter_new(const struct minter_options *options);
/* Every mint must have ended or been cancelled. NULL is fine. */
void minter_free(struct minter *minter);

/* From now on mints use these; those under way end with what they began with. */
void minter_set_source(struct minter *minter, struct credential *credential, const char *endpoint,
		       const char *quota_project);
void minter_set_audit(struct minter *minter, struct audit *audit);

/* How a token cache mints, with the minter as context. */
extern const struct mint_ops minter_ops;

/* Mints under way. */
unsigned minter_busy(const struct minter *minter);

/* Our wall clock minus Google's, as last seen. */
int64_t minter_skew_s(const struct minter *minter);

const struct minter_stats *minter_stats(const struct minter *minter);
