/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/token_cache_fixture.h"

#include "broker/base/alloc.h"
#include "broker/base/secret.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* No run of a test has that many timers due; more is a timer that sets itself to now for ever. */
#define RUNS_MAX 100000

struct mint {
	struct list link; /* first: see mint_of() */
	struct subject *subject;
	struct timer timer;
	struct mint_plan plan;
	char ref[TOKEN_REF_SIZE];
	bool source_changed;
	mint_done *done;
	void *done_ctx;
};

const struct mint_plan plan_hang = {.end = MINT_HANGS};
const struct mint_plan plan_succeed = {
	.end = MINT_SUCCEEDS,
	.after_ms = MINT_MS,
	.life_ms = LIFE_MS,
};
const struct mint_plan plan_fail = {
	.end = MINT_FAILS,
	.after_ms = MINT_MS,
	.class = FAILURE_TRANSIENT,
};
const struct mint_plan plan_deny = {
	.end = MINT_FAILS,
	.after_ms = MINT_MS,
	.class = FAILURE_PERMANENT,
};

void fixture_must(const struct fixture *fixture, bool holds, const char *rule)
{
	if (!holds)
		fail_msg("seed %u, step %u, at %lld ms: %s", fixture->seed, fixture->step,
			 (long long)fixture->clock.boot_ms, rule);
}

int64_t fixture_now_ms(const struct fixture *fixture)
{
	return fixture->clock.boot_ms;
}

int64_t subject_left_ms(const struct subject *subject)
{
	const struct fake_clock *const clock = &subject->fixture->clock;

	if (!subject->has_token)
		return 0;
	const int64_t boot_ms = subject->boot_deadline_ms - clock->boot_ms;
	const int64_t wall_ms = subject->wall_deadline_ms - clock->wall_ms;
	return boot_ms < wall_ms ? boot_ms : wall_ms;
}

static void key_text(char text[static KEY_TEXT_SIZE], const struct token_key *key)
{
	size_t len = 0;

	len += (size_t)snprintf(text, KEY_TEXT_SIZE, "%s %lld %s%s", key->service_account,
				(long long)key->lifetime_s, key->session ? "=" : "",
				key->session ? key->session : "-");
	for (size_t i = 0; i < key->scopes->count; i++)
		len += (size_t)snprintf(text + len, KEY_TEXT_SIZE - len, " s:%s",
					key->scopes->items[i]);
	for (size_t i = 0; i < key->delegates->count; i++)
		len += (size_t)snprintf(text + len, KEY_TEXT_SIZE - len, " d:%s",
					key->delegates->items[i]);
	assert_true(len < KEY_TEXT_SIZE);
}

static struct subject *find_subject(struct fixture *fixture, const char *key)
{
	for (size_t i = 0; i < fixture->subject_count; i++)
		if (!strcmp(fixture->subjects[i].key, key))
			return &fixture->subjects[i];
	fail_msg("a mint was started for a key that nobody has: %s", key);
	return NULL;
}

static void note_start(struct fixture *fixture, const char *key, const char *ref)
{
	if (fixture->start_count == fixture->start_capacity) {
		fixture->start_capacity = fixture->start_capacity * 2 + 64;
		fixture->starts = xreallocarray(fixture->starts, fixture->start_capacity,
						sizeof(*fixture->starts));
	}
	struct mint_start *const start = &fixture->starts[fixture->start_count++];
	start->at_ms = fixture_now_ms(fixture);
	(void)snprintf(start->ref, sizeof(start->ref), "%s", ref);
	(void)snprintf(start->key, sizeof(start->key), "%s", key);
}

static void on_mint_due(struct timer *timer)
{
	struct mint *const mint = CONTAINER_OF(timer, struct mint, timer);
	const struct mint_plan plan = mint->plan;

	fixture_finish_mint(mint, &plan);
}

static struct mint *mint_start(void *ctx, const struct token_key *key, const char *ref,
			       mint_done *done, void *done_ctx)
{
	struct fixture *const fixture = ctx;
	struct mint *const mint = xcalloc(1, sizeof(*mint));
	char text[KEY_TEXT_SIZE];

	key_text(text, key);
	struct subject *const subject = find_subject(fixture, text);
	fixture_must(fixture, !subject->in_flight, "a second mint of one key");
	fixture_must(fixture, fixture_now_ms(fixture) >= subject->hold_until_ms,
		     "a mint before its time");
	fixture_must(fixture, strlen(ref) == 8 && strspn(ref, "0123456789abcdef") == 8,
		     "a ref of 8 hex");
	note_start(fixture, text, ref);
	subject->in_flight = true;
	subject->hasty = subject->has_token && subject_left_ms(subject) > 0 &&
			 fixture_now_ms(fixture) - subject->arrived_ms < 1000;
	subject->starts++;
	(void)snprintf(subject->ref, sizeof(subject->ref), "%s", ref);
	*mint = (struct mint){
		.subject = subject,
		.plan = fixture->plan,
		.done = done,
		.done_ctx = done_ctx,
	};
	(void)snprintf(mint->ref, sizeof(mint->ref), "%s", ref);
	list_append(&fixture->open, &mint->link);
	if (mint->plan.end != MINT_HANGS)
		timer_set_after(&fixture->timers, &mint->timer, mint->plan.after_ms, on_mint_due);
	return mint;
}

static void free_mint(struct mint *mint)
{
	timer_stop(&mint->subject->fixture->timers, &mint->timer);
	list_remove(&mint->link);
	mint->subject->in_flight = false;
	free(mint);
}

static void mint_cancel(void *ctx, struct mint *mint)
{
	struct fixture *const fixture = ctx;

	fixture->cancelled++;
	free_mint(mint);
}

static uint32_t jitter_none(uint32_t bound)
{
	(void)bound;
	return 0;
}

static uint32_t jitter_half(uint32_t bound)
{
	return bound / 2;
}

static uint32_t jitter_most(uint32_t bound)
{
	return bound - 1;
}

/* Up to 1 s (minting.md, section 6). */
static const struct {
	int64_t ms;
	struct mint_ops ops;
} jitters[] = {
	[JITTER_NONE] = {0, {mint_start, mint_cancel, jitter_none}},
	[JITTER_HALF] = {500, {mint_start, mint_cancel, jitter_half}},
	[JITTER_MOST] = {1000, {mint_start, mint_cancel, jitter_most}},
};

static void note_token(struct subject *subject, int64_t life_ms)
{
	const struct fixture *const fixture = subject->fixture;

	subject->minted++;
	(void)snprintf(subject->token, sizeof(subject->token), "token-%zu-of-%zu", subject->minted,
		       (size_t)(subject - fixture->subjects));
	subject->has_token = true;
	subject->arrived_ms = fixture->clock.boot_ms;
	subject->boot_deadline_ms = fixture->clock.boot_ms + life_ms;
	subject->wall_deadline_ms = fixture->clock.wall_ms + life_ms;
	subject->hold_until_ms = 0;
	subject->failures = 0;
}

static void note_failure(struct subject *subject, const struct mint_plan *plan, const char *ref)
{
	static const int64_t backoffs_ms[] = {1000, 2000, 4000, 8000, 16000, 32000};
	const struct fixture *const fixture = subject->fixture;
	const size_t last = ARRAY_LEN(backoffs_ms) - 1;

	subject->hasty = false;
	subject->failure = plan->class;
	(void)snprintf(subject->failure_ref, sizeof(subject->failure_ref), "%s", ref);
	if (plan->class == FAILURE_PERMANENT) {
		subject->hold_until_ms = fixture_now_ms(fixture) + PERMANENT_MS;
		return;
	}
	const int64_t own_ms = backoffs_ms[subject->failures < last ? subject->failures : last] +
			       jitters[fixture->jitter].ms;
	const int64_t asked_ms = plan->retry_after_s * 1000;
	subject->failures++;
	subject->hold_until_ms = fixture_now_ms(fixture) + (own_ms > asked_ms ? own_ms : asked_ms);
}

void fixture_finish_mint(struct mint *mint, const struct mint_plan *plan)
{
	struct subject *const subject = mint->subject;
	mint_done *const done = mint->done;
	void *const done_ctx = mint->done_ctx;

	if (plan->end == MINT_SUCCEEDS) {
		note_token(subject, plan->life_ms);
		free_mint(mint);
		AUTO_SECRET struct secret *token =
			secret_new(subject->token, strlen(subject->token));
		done(done_ctx, &(struct mint_result){.token = token, .life_ms = plan->life_ms},
		     NULL);
		return;
	}
	struct failure failure = {
		.class = plan->class,
		.public = plan->class == FAILURE_PERMANENT ? FAILURE_NOT_ALLOWED :
							     FAILURE_TEMPORARY,
		.step = FAILURE_STEP_MINT,
		.retry_after_s = plan->retry_after_s,
	};
	if (!mint->source_changed)
		note_failure(subject, plan, mint->ref);
	free_mint(mint);
	done(done_ctx, NULL, &failure);
}

void fixture_finish(struct fixture *fixture, const struct mint_plan *plan)
{
	assert_false(list_empty(&fixture->open));
	fixture_finish_mint(mint_of(list_first(&fixture->open)), plan);
}

void fixture_source_changed(struct fixture *fixture)
{
	list_for_each(link, &fixture->open) {
		mint_of(link)->source_changed = true;
	}
	for (size_t i = 0; i < fixture->subject_count; i++) {
		fixture->subjects[i].hold_until_ms = 0;
		fixture->subjects[i].failures = 0;
	}
	token_cache_source_changed(fixture->cache);
}

struct token_key fixture_key(void)
{
	static char scope[] = FIXTURE_SCOPE;
	static char *scopes[] = {scope};
	static const struct strv scope_list = {scopes, ARRAY_LEN(scopes)};
	static const struct strv no_delegates = {NULL, 0};

	return (struct token_key){
		.service_account = FIXTURE_ACCOUNT,
		.scopes = &scope_list,
		.delegates = &no_delegates,
		.lifetime_s = 3600,
		.session = "0123456789abcdef",
	};
}

struct subject *fixture_add(struct fixture *fixture, const struct token_key *key, int64_t margin_s)
{
	assert_true(fixture->subject_count < SUBJECTS_MAX);
	struct subject *const subject = &fixture->subjects[fixture->subject_count++];
	*subject = (struct subject){.fixture = fixture, .margin_s = margin_s};
	key_text(subject->key, key);
	subject->entry = token_cache_get(fixture->cache, key);
	return subject;
}

void fixture_init(struct fixture *fixture, enum jitter jitter)
{
	const struct token_key key = fixture_key();

	*fixture = (struct fixture){.jitter = jitter, .plan = plan_succeed};
	fake_clock_init(&fixture->clock);
	timer_queue_init(&fixture->timers, &fixture->clock.clock);
	list_init(&fixture->open);
	fixture->cache = token_cache_new(&fixture->timers, &jitters[jitter].ops, fixture);
	(void)fixture_add(fixture, &key, MARGIN_S);
}

void fixture_deinit(struct fixture *fixture)
{
	for (size_t i = 0; i < fixture->subject_count; i++)
		token_entry_unref(fixture->subjects[i].entry);
	assert_true(list_empty(&fixture->open));
	token_cache_free(fixture->cache);
	timer_queue_deinit(&fixture->timers);
	free(fixture->starts);
}

void fixture_advance(struct fixture *fixture, int64_t ms)
{
	const int64_t end_ms = fixture_now_ms(fixture) + ms;

	for (size_t runs = 0;; runs++) {
		const int64_t due_ms = timer_queue_next_ms(&fixture->timers);
		if (due_ms < 0 || due_ms > end_ms)
			break;
		fixture_must(fixture, runs < RUNS_MAX, "timers that never end");
		if (due_ms > fixture_now_ms(fixture))
			fake_clock_advance_ms(&fixture->clock, due_ms - fixture_now_ms(fixture));
		timer_queue_run(&fixture->timers);
	}
	fake_clock_advance_ms(&fixture->clock, end_ms - fixture_now_ms(fixture));
}

void fixture_suspend(struct fixture *fixture, int64_t ms)
{
	fake_clock_advance_ms(&fixture->clock, ms);
	fixture_advance(fixture, 0);
}
