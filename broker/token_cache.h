/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Minted tokens: who gets which one when, and when a new one is made. One mint in flight a key, however
 * many wait for it; a failed one is not tried again before its time. Knows no network: minting comes in
 * as two functions.
 */
#pragma once

#include "broker/base/compiler.h"
#include "broker/base/list.h"
#include "broker/base/timer.h"
#include "broker/google/failure.h"

#include <stdbool.h>
#include <stdint.h>

struct mint;
struct secret;
struct strv;
struct token_cache;
struct token_entry;

/* Eight hex digits that name one mint, with the NUL. */
#define TOKEN_REF_SIZE 9

/* A token at or under the margin with less is not handed out, unless it was minted a moment ago. */
#define TOKEN_FLOOR_MS 30000
/* How long a request waits for a new token while the old one has TOKEN_FLOOR_MS, and otherwise. */
#define TOKEN_WAIT_WITH_OLD_MS 300
#define TOKEN_WAIT_MS 2500
#define TOKEN_PERMANENT_HOLD_MS 30000

/* What a token is minted for. Compared in full; copied by the cache. */
struct token_key {
	const char *source; /* its type in the configuration */
	const char *service_account;
	const struct strv *scopes;
	const struct strv *delegates;
	int64_t lifetime_s;
	const char *session; /* NULL: shared by all that ask with the same rest */
	const char *profile; /* who asked first, for the log; not compared */
};

struct mint_result {
	struct secret *token; /* borrowed */
	int64_t life_ms;      /* from now, at least 1000 */
};

/* Exactly one of result and failure is not NULL. */
typedef void mint_done(void *ctx, const struct mint_result *result, const struct failure *failure);

struct mint_ops {
	/* One try. `done` is called once, never before this returns. */
	struct mint *(*start)(void *ctx, const struct token_key *key, const char *ref,
			      mint_done *done, void *done_ctx);
	/* Ends it without the callback. */
	void (*cancel)(void *ctx, struct mint *mint);
	/* A number below bound, for the jitter of backoffs. */
	uint32_t (*random_below)(uint32_t bound);
};

enum token_status {
	TOKEN_OK,
	TOKEN_UNAVAILABLE, /* for now: 503 */
	TOKEN_DENIED,	   /* for good: 403 */
};

struct token_answer {
	enum token_status status;
	struct secret *token;	 /* with TOKEN_OK; borrowed for the time of the callback */
	int64_t expires_in_s;	 /* with TOKEN_OK; > 0 */
	enum failure_public why; /* else */
	const char *ref;	 /* else: the mint that failed or is under way */
	int64_t retry_after_s;	 /* with TOKEN_UNAVAILABLE; >= 1 */
};

typedef void token_done(void *ctx, const struct token_answer *answer);

/* A request that waits. Embedded in its owner; zeroed it waits for nothing. */
struct token_wait {
	struct list link;
	struct timer timer;
	struct token_entry *entry;
	int64_t arrival_ms;
	int64_t limit_ms; /* from arrival; 0: as the contract says for a sandbox */
	bool with_old;	  /* the old token had TOKEN_FLOOR_MS when it came */
	token_done *done;
	void *ctx;
};

struct token_info {
	const char *state; /* "none", "fresh", "stale", "expired" */
	int64_t expires_wall_ms;
	int64_t refresh_wall_ms;
	bool failed; /* the last mint did; the rest says how */
	const struct failure *failure;
	const char *failure_ref;
	int64_t failure_wall_ms;
};

NODISCARD struct token_cache *token_cache_new(struct timer_queue *timers,
					      const struct mint_ops *ops, void *ops_ctx);
/* Every entry must have been given back. NULL is fine. */
void token_cache_free(struct token_cache *cache);

/* Clears every kept failure at once: what was refused may go now. */
void token_cache_source_changed(struct token_cache *cache);

/* The entry of that key, made where there is none. The caller's reference. */
NODISCARD struct token_entry *token_cache_get(struct token_cache *cache,
					      const struct token_key *key);
/* Returns entry. */
struct token_entry *token_entry_ref(struct token_entry *entry);
/* The last reference ends a mint under way. NULL is fine. */
void token_entry_unref(struct token_entry *entry);

/*
 * Asks for a token, by the rules of the contract's section 5, for a request that arrived at arrival_ms
 * (boot time). Returns true with the answer, borrowed until the next call; or false, and `done` will be
 * called once unless token_wait_cancel() comes first.
 */
NODISCARD bool token_request(struct token_entry *entry, int64_t margin_s, struct token_wait *wait,
			     struct token_answer *answer);
/* The request has gone; the mint goes on. A zeroed or ended wait is fine. */
void token_wait_cancel(struct token_wait *wait);

void token_entry_info(const struct token_entry *entry, int64_t margin_s, struct token_info *info);
