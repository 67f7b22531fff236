/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random walks: requests, cancelled waits, steps of both clocks and outcomes of mints in any order. The
 * ledger of the fixture and the checks of its clients hold at every step (see token_cache_client.c):
 * no expired token, one mint in flight a key, none before its time, every wait answered once and in time.
 */
#include "broker/token_cache.h"

#include "tests/unit/token_cache_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define SEEDS 200
#define STEPS 2000
#define CLIENTS 16

struct walk {
	struct fixture fixture;
	struct client clients[CLIENTS];
	unsigned asked[CLIENTS]; /* requests that were not cancelled */
	uint64_t state;
};

/* xorshift64*: the same walk for the same seed. */
static int64_t below(struct walk *walk, int64_t bound)
{
	walk->state ^= walk->state >> 12;
	walk->state ^= walk->state << 25;
	walk->state ^= walk->state >> 27;
	return (int64_t)((walk->state * UINT64_C(0x2545f4914f6cdd1d)) >> 33) % bound;
}

static bool chance(struct walk *walk, int64_t percent)
{
	return below(walk, 100) < percent;
}

static struct mint_plan any_outcome(struct walk *walk)
{
	static const int64_t lives_ms[] = {1000,   29000,  30000,  31000,   60000,
					   300000, 301000, 600000, 3600000, 3601000};
	struct mint_plan plan = {.after_ms = below(walk, 4000)};

	if (chance(walk, 50)) {
		plan.end = MINT_SUCCEEDS;
		plan.life_ms = lives_ms[below(walk, ARRAY_LEN(lives_ms))] + below(walk, 1000);
		return plan;
	}
	plan.end = MINT_FAILS;
	plan.class = chance(walk, 30) ? FAILURE_PERMANENT : FAILURE_TRANSIENT;
	plan.retry_after_s = chance(walk, 30) ? below(walk, 61) : 0;
	return plan;
}

static void request_or_cancel(struct walk *walk)
{
	struct fixture *const f = &walk->fixture;
	const size_t who = (size_t)below(walk, CLIENTS);
	struct client *const client = &walk->clients[who];

	if (client->waiting) {
		client_cancel(client);
		walk->asked[who]--;
		return;
	}
	const size_t what = (size_t)below(walk, (int64_t)f->subject_count);
	const int64_t ago_ms = chance(walk, 20) ? below(walk, 3000) : 0;
	walk->asked[who]++;
	client_ask_since(client, &f->subjects[what], fixture_now_ms(f) - ago_ms);
}

static void let_time_pass(struct walk *walk)
{
	static const int64_t spans_ms[] = {2, 50, 400, 3000, 3000, 40000, 400000, 4000000};

	fixture_advance(&walk->fixture, below(walk, spans_ms[below(walk, ARRAY_LEN(spans_ms))]));
}

/* After a step of the wall clock an old token may be one no more, and on waking it may be late. */
static void allow_waits_until(struct walk *walk, int64_t by_ms)
{
	for (size_t i = 0; i < CLIENTS; i++) {
		struct client *const client = &walk->clients[i];
		const int64_t limit_ms = client->arrived_ms + WAIT_MS;
		if (client->waiting)
			client->limit_ms = limit_ms > by_ms ? limit_ms : by_ms;
	}
}

static void disturb_clocks(struct walk *walk)
{
	struct fixture *const f = &walk->fixture;

	if (chance(walk, 50)) {
		f->clock.wall_ms += below(walk, 8000000) - 4000000;
		allow_waits_until(walk, 0);
		return;
	}
	const int64_t asleep_ms = below(walk, chance(walk, 50) ? 5000 : 5000000);
	allow_waits_until(walk, fixture_now_ms(f) + asleep_ms);
	if (chance(walk, 30))
		f->clock.wall_ms -= below(walk, asleep_ms + 1);
	fixture_suspend(f, asleep_ms);
}

static void one_step(struct walk *walk)
{
	struct fixture *const f = &walk->fixture;
	const int64_t what = below(walk, 100);

	if (chance(walk, 20))
		f->plan = chance(walk, 30) ? plan_hang : any_outcome(walk);
	if (what < 60) {
		request_or_cancel(walk);
	} else if (what < 85) {
		let_time_pass(walk);
	} else if (what < 95) {
		const struct mint_plan plan = any_outcome(walk);
		if (!list_empty(&f->open))
			fixture_finish(f, &plan);
	} else if (what < 98) {
		disturb_clocks(walk);
	} else {
		fixture_source_changed(f);
	}
}

/* Whoever waits is answered by now, once a request. */
static void expect_every_answer(struct walk *walk)
{
	fixture_advance(&walk->fixture, WAIT_MS);
	for (size_t i = 0; i < CLIENTS; i++) {
		fixture_must(&walk->fixture, !walk->clients[i].waiting, "a wait without an end");
		fixture_must(&walk->fixture, walk->clients[i].answers == walk->asked[i],
			     "not one answer a request");
	}
}

/* Failures end: when what is held has passed, the next request has its token. */
static void expect_recovery(struct walk *walk)
{
	struct fixture *const f = &walk->fixture;

	f->plan = plan_succeed;
	fixture_advance(f, 4000);
	while (!list_empty(&f->open))
		fixture_finish(f, &plan_fail);
	for (size_t i = 0; i < f->subject_count; i++) {
		struct client client = {0};
		const int64_t hold_ms = f->subjects[i].hold_until_ms - fixture_now_ms(f);
		fixture_must(f, hold_ms <= 60000, "a hold of more than a step");
		if (hold_ms > 0)
			fixture_advance(f, hold_ms);
		client_ask(&client, &f->subjects[i]);
		fixture_advance(f, MINT_MS);
		fixture_must(f, !client.waiting && client.status == TOKEN_OK, "no recovery");
	}
}

static void add_subjects(struct fixture *f)
{
	struct token_key key = fixture_key();

	key.service_account = "short@my-project.iam.gserviceaccount.com";
	key.lifetime_s = 300;
	(void)fixture_add(f, &key, 100);
	key.session = NULL;
	(void)fixture_add(f, &key, 10);
}

static void take_walk(unsigned seed)
{
	static const enum jitter jitters[] = {JITTER_NONE, JITTER_HALF, JITTER_MOST};
	struct walk walk = {.state = seed * UINT64_C(0x9e3779b97f4a7c15)};
	struct fixture *const f = &walk.fixture;

	fixture_init(f, jitters[seed % ARRAY_LEN(jitters)]);
	f->seed = seed;
	add_subjects(f);
	for (f->step = 0; f->step < STEPS; f->step++)
		one_step(&walk);
	expect_every_answer(&walk);
	expect_recovery(&walk);
	fixture_deinit(f);
}

static void the_rules_hold_on_any_walk(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= SEEDS; seed++)
		take_walk(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_rules_hold_on_any_walk),
	};

	return cmocka_run_group_tests_name("token cache, walks", tests, NULL, NULL);
}
