/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/token_cache.h"

#include "broker/base/alloc.h"
#include "broker/base/clock.h"
#include "broker/base/random.h"
#include "broker/base/secret.h"
#include "broker/base/strv.h"

#include <string.h>

#define BACKOFF_MAX_SHIFT 5 /* 32 s */
#define JITTER_MS 1000
/*
 * A token that is refreshed while it is younger than that lives shortly. The new one is kept as long
 * before the next try, however short it lives: a storm of clients is no storm of mints.
 */
#define YOUNG_MS 1000

struct token_cache {
	struct timer_queue *timers;
	const struct mint_ops *ops;
	void *ops_ctx;
	struct list entries;
};

struct token_entry {
	struct list link;
	struct token_cache *cache;
	size_t refs;

	char *source;
	char *service_account;
	struct strv scopes;
	struct strv delegates;
	int64_t lifetime_s;
	char *session;
	char *profile;

	struct secret *token; /* NULL: none yet */
	int64_t arrived_ms;
	int64_t boot_deadline_ms;
	int64_t wall_deadline_ms;

	struct mint *mint; /* under way, or NULL */
	char mint_ref[TOKEN_REF_SIZE];
	bool source_changed; /* since the mint began */
	bool hasty;	     /* the last mint began while its token was young */
	struct list waits;

	bool failed; /* the last mint */
	struct failure failure;
	char failure_ref[TOKEN_REF_SIZE];
	int64_t failure_wall_ms;
	int64_t hold_until_ms; /* no mint starts before */
	unsigned failures;     /* in a row */
	struct timer retry;
};

static void on_minted(void *ctx, const struct mint_result *result, const struct failure *failure);
static void on_retry(struct timer *timer);
static void on_wait_over(struct timer *timer);

struct token_cache *token_cache_new(struct timer_queue *timers, const struct mint_ops *ops,
				    void *ops_ctx)
{
	struct token_cache *const cache = xcalloc(1, sizeof(*cache));

	cache->timers = timers;
	cache->ops = ops;
	cache->ops_ctx = ops_ctx;
	list_init(&cache->entries);
	return cache;
}

void token_cache_free(struct token_cache *cache)
{
	free(cache);
}

static int64_t now_ms(const struct token_entry *entry)
{
	return clock_boot_ms(entry->cache->timers->clock);
}

static int64_t wall_ms(const struct token_entry *entry)
{
	return clock_wall_ms(entry->cache->timers->clock);
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* The session is first: among a thousand of them nothing else tells one key from another. */
static bool has_key(const struct token_entry *entry, const struct token_key *key)
{
	return same_text(entry->session, key->session) && entry->lifetime_s == key->lifetime_s &&
	       same_text(entry->source, key->source) &&
	       same_text(entry->service_account, key->service_account) &&
	       strv_equal(&entry->scopes, key->scopes) &&
	       strv_equal(&entry->delegates, key->delegates);
}

struct token_entry *token_cache_get(struct token_cache *cache, const struct token_key *key)
{
	list_for_each(link, &cache->entries) {
		struct token_entry *const entry = CONTAINER_OF(link, struct token_entry, link);
		if (has_key(entry, key))
			return token_entry_ref(entry);
	}
	struct token_entry *const entry = xcalloc(1, sizeof(*entry));
	entry->cache = cache;
	entry->refs = 1;
	entry->source = key->source ? xstrdup(key->source) : NULL;
	entry->service_account = xstrdup(key->service_account);
	entry->session = key->session ? xstrdup(key->session) : NULL;
	entry->profile = key->profile ? xstrdup(key->profile) : NULL;
	entry->lifetime_s = key->lifetime_s;
	strv_copy(&entry->scopes, key->scopes);
	strv_copy(&entry->delegates, key->delegates);
	list_init(&entry->waits);
	list_append(&cache->entries, &entry->link);
	return entry;
}

struct token_entry *token_entry_ref(struct token_entry *entry)
{
	entry->refs++;
	return entry;
}

void token_entry_unref(struct token_entry *entry)
{
	if (!entry || --entry->refs > 0)
		return;
	if (entry->mint)
		entry->cache->ops->cancel(entry->cache->ops_ctx, entry->mint);
	timer_stop(entry->cache->timers, &entry->retry);
	list_remove(&entry->link);
	secret_unref(entry->token);
	strv_deinit(&entry->scopes);
	strv_deinit(&entry->delegates);
	free(entry->source);
	free(entry->service_account);
	free(entry->session);
	free(entry->profile);
	free(entry);
}

/*
 * What is left of the token: the earlier of two deadlines wins, so a wall clock stepped forward costs a
 * mint and one stepped back gains nothing.
 */
static int64_t left_ms(const struct token_entry *entry)
{
	if (!entry->token)
		return 0;
	const int64_t boot_ms = entry->boot_deadline_ms - now_ms(entry);
	const int64_t by_wall_ms = entry->wall_deadline_ms - wall_ms(entry);
	return boot_ms < by_wall_ms ? boot_ms : by_wall_ms;
}

static void drop_token(struct token_entry *entry)
{
	secret_unref(entry->token);
	entry->token = NULL;
}

static bool is_young(const struct token_entry *entry)
{
	return entry->token && now_ms(entry) - entry->arrived_ms < YOUNG_MS;
}

static void start_mint(struct token_entry *entry)
{
	const struct token_key key = {
		.source = entry->source,
		.service_account = entry->service_account,
		.scopes = &entry->scopes,
		.delegates = &entry->delegates,
		.lifetime_s = entry->lifetime_s,
		.session = entry->session,
		.profile = entry->profile,
	};

	timer_stop(entry->cache->timers, &entry->retry);
	random_hex(entry->mint_ref, sizeof(entry->mint_ref));
	entry->source_changed = false;
	entry->hasty = is_young(entry);
	entry->mint = entry->cache->ops->start(entry->cache->ops_ctx, &key, entry->mint_ref,
					       on_minted, entry);
}

static void start_mint_if_allowed(struct token_entry *entry)
{
	if (!entry->mint && now_ms(entry) >= entry->hold_until_ms)
		start_mint(entry);
}

/* left: as decided upon, since the clocks may step before they are read again. */
static void answer_token(const struct token_entry *entry, int64_t left, struct token_answer *answer)
{
	*answer = (struct token_answer){
		.status = TOKEN_OK,
		.token = entry->token,
		.expires_in_s = left / 1000,
	};
}

/* No token, because the last mint failed and the next one may not start yet. */
static void answer_failure(const struct token_entry *entry, struct token_answer *answer)
{
	const int64_t wait_s = (entry->hold_until_ms - now_ms(entry) + 999) / 1000;

	*answer = (struct token_answer){
		.status = entry->failure.class == FAILURE_PERMANENT ? TOKEN_DENIED :
								      TOKEN_UNAVAILABLE,
		.why = entry->failure.public,
		.ref = entry->failure_ref,
		.retry_after_s = wait_s > 1 ? wait_s : 1,
	};
}

/* No token yet. */
static void answer_late(const struct token_entry *entry, struct token_answer *answer)
{
	*answer = (struct token_answer){
		.status = TOKEN_UNAVAILABLE,
		.why = FAILURE_TEMPORARY,
		.ref = entry->mint_ref,
		.retry_after_s = 1,
	};
}

/* A callback may ask again, cancel others, or give back the last reference. */
static void end_waits(struct token_entry *entry, struct list *waits,
		      const struct token_answer *answer)
{
	AUTO_SECRET struct secret *token = answer->token ? secret_ref(answer->token) : NULL;

	token_entry_ref(entry);
	while (!list_empty(waits)) {
		struct token_wait *const wait =
			CONTAINER_OF(list_first(waits), struct token_wait, link);
		token_wait_cancel(wait);
		wait->done(wait->ctx, answer);
	}
	token_entry_unref(entry);
}

void token_wait_cancel(struct token_wait *wait)
{
	if (!wait->entry)
		return;
	timer_stop(wait->entry->cache->timers, &wait->timer);
	list_remove(&wait->link);
	wait->entry = NULL;
}

/* Sets the wait's timer; false where its time is over already. */
static bool keep_waiting(struct token_wait *wait, int64_t limit_ms)
{
	const int64_t due_ms = wait->arrival_ms + (wait->limit_ms ? wait->limit_ms : limit_ms);

	if (due_ms <= now_ms(wait->entry))
		return false;
	timer_set(wait->entry->cache->timers, &wait->timer, due_ms, on_wait_over);
	return true;
}

static void on_wait_over(struct timer *timer)
{
	struct token_wait *const wait = CONTAINER_OF(timer, struct token_wait, timer);
	struct token_entry *const entry = wait->entry;
	const int64_t left = left_ms(entry);
	struct token_answer answer;
	struct list alone;

	if (left >= TOKEN_FLOOR_MS)
		answer_token(entry, left, &answer);
	else if (wait->with_old && keep_waiting(wait, TOKEN_WAIT_MS))
		return; /* the old token passed the floor meanwhile */
	else
		answer_late(entry, &answer);
	list_init(&alone);
	list_remove(&wait->link);
	list_append(&alone, &wait->link);
	end_waits(entry, &alone, &answer);
}

static bool is_kept(const struct token_entry *entry)
{
	return entry->hasty && is_young(entry);
}

bool token_request(struct token_entry *entry, int64_t margin_s, struct token_wait *wait,
		   struct token_answer *answer)
{
	const int64_t margin_ms = margin_s * 1000;
	const int64_t left = left_ms(entry);

	if (left <= 0)
		drop_token(entry);
	const bool good = left >= TOKEN_FLOOR_MS;
	const bool kept = is_kept(entry);

	if (left <= 2 * margin_ms && !kept)
		start_mint_if_allowed(entry);
	if (left > margin_ms || (!entry->mint && (good || (kept && left >= 1000)))) {
		answer_token(entry, left, answer);
		return true;
	}
	if (!entry->mint) {
		if (entry->failed)
			answer_failure(entry, answer);
		else
			answer_late(entry, answer);
		return true;
	}
	wait->entry = entry;
	wait->with_old = good;
	if (!keep_waiting(wait, good ? TOKEN_WAIT_WITH_OLD_MS : TOKEN_WAIT_MS)) {
		wait->entry = NULL;
		if (good)
			answer_token(entry, left, answer);
		else
			answer_late(entry, answer);
		return true;
	}
	list_append(&entry->waits, &wait->link);
	return false;
}

static void keep_token(struct token_entry *entry, const struct mint_result *result)
{
	secret_unref(entry->token);
	entry->token = secret_ref(result->token);
	entry->arrived_ms = now_ms(entry);
	entry->boot_deadline_ms = entry->arrived_ms + result->life_ms;
	entry->wall_deadline_ms = wall_ms(entry) + result->life_ms;
	entry->failed = false;
	entry->failures = 0;
	entry->hold_until_ms = 0;
}

static int64_t backoff_ms(const struct token_entry *entry)
{
	const unsigned shift = entry->failures < BACKOFF_MAX_SHIFT ? entry->failures :
								     BACKOFF_MAX_SHIFT;
	const int64_t own_ms =
		(INT64_C(1000) << shift) + entry->cache->ops->random_below(JITTER_MS + 1);
	const int64_t asked_ms = entry->failure.retry_after_s * 1000;

	return own_ms > asked_ms ? own_ms : asked_ms;
}

static void keep_failure(struct token_entry *entry, const struct failure *failure)
{
	const int64_t now = now_ms(entry);

	entry->failed = true;
	entry->hasty = false; /* the backoff is what holds it now */
	entry->failure = *failure;
	entry->failure_wall_ms = wall_ms(entry);
	memcpy(entry->failure_ref, entry->mint_ref, sizeof(entry->failure_ref));
	if (failure->class == FAILURE_PERMANENT) {
		entry->hold_until_ms = now + TOKEN_PERMANENT_HOLD_MS;
		return;
	}
	entry->hold_until_ms = now + backoff_ms(entry);
	entry->failures++;
	if (left_ms(entry) > 0)
		timer_set(entry->cache->timers, &entry->retry, entry->hold_until_ms, on_retry);
}

/* A token that is being refreshed is tried for without being asked, while there is one. */
static void on_retry(struct timer *timer)
{
	struct token_entry *const entry = CONTAINER_OF(timer, struct token_entry, retry);

	if (left_ms(entry) > 0)
		start_mint_if_allowed(entry);
}

static void on_minted(void *ctx, const struct mint_result *result, const struct failure *failure)
{
	struct token_entry *const entry = ctx;
	struct token_answer answer;
	struct list waits;

	entry->mint = NULL;
	if (failure && entry->source_changed) {
		/* It began with a source that is no more: that says nothing of the new one. */
		if (!list_empty(&entry->waits) || left_ms(entry) > 0)
			start_mint(entry);
		return;
	}
	if (failure)
		keep_failure(entry, failure);
	else
		keep_token(entry, result);
	/* A new token is given however short it lives. */
	const int64_t left = result ? result->life_ms : left_ms(entry);
	if (result || left >= TOKEN_FLOOR_MS)
		answer_token(entry, left, &answer);
	else
		answer_failure(entry, &answer);
	list_move_all(&waits, &entry->waits);
	end_waits(entry, &waits, &answer);
}

void token_cache_source_changed(struct token_cache *cache)
{
	list_for_each(link, &cache->entries) {
		struct token_entry *const entry = CONTAINER_OF(link, struct token_entry, link);
		const bool retrying = timer_is_set(&entry->retry);
		entry->source_changed = true;
		entry->hold_until_ms = 0;
		entry->failures = 0;
		if (retrying)
			timer_set_after(cache->timers, &entry->retry, 0, on_retry);
	}
}

static const char *state_of(int64_t left_ms, int64_t margin_ms)
{
	if (left_ms <= 0)
		return "expired";
	return left_ms <= margin_ms ? "stale" : "fresh";
}

void token_entry_info(const struct token_entry *entry, int64_t margin_s, struct token_info *info)
{
	const int64_t left = left_ms(entry);

	*info = (struct token_info){.state = "none"};
	if (entry->token) {
		info->state = state_of(left, margin_s * 1000);
		info->expires_wall_ms = wall_ms(entry) + left;
		info->refresh_wall_ms = info->expires_wall_ms - 2 * margin_s * 1000;
	}
	if (entry->failed) {
		info->failed = true;
		info->failure = &entry->failure;
		info->failure_ref = entry->failure_ref;
		info->failure_wall_ms = entry->failure_wall_ms;
	}
}
