/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An hour of a broker's life, many times over: clients ask, Google and the source fail and are well again,
 * the source is changed, and the wall clock is set. The ledger of the fixture and the checks of its clients
 * hold at every moment (see token_cache_client.c): no expired token is served, one mint is in flight a key,
 * none starts before its backoff is over, and each request is answered in time. Here in addition: once a
 * fault has ended, every key has a token within the backoff step then running.
 */
#include "broker/token_cache.h"

#include "tests/unit/token_cache_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SEEDS 50
#define SEEDS_LONG 1000
#define HOUR_MS INT64_C(3600000)
#define CLIENTS 24
/* A call to Google ends by then, whatever Google does. */
#define CALL_MS INT64_C(30000)
/* The longest step: 32 s and 1 s of jitter, or a Retry-After of 60 s. */
#define STEP_MAX_MS INT64_C(60000)
/* What a good mint takes at most here. */
#define GOOD_MS INT64_C(2000)

enum fault {
	FAULT_NONE,
	FAULT_DOWN,    /* transient failures, at once */
	FAULT_BUSY,    /* with a Retry-After */
	FAULT_HANGS,   /* each call takes its whole time and fails */
	FAULT_REFUSES, /* permanent failures */
	FAULT_SHORT,   /* tokens that hardly live */
	FAULT_MIXED,   /* anything, each time anew */
	FAULT_COUNT,
};

struct hour {
	struct fixture fixture;
	struct client clients[CLIENTS];
	unsigned asked[CLIENTS];
	enum fault fault;
	int64_t until_ms; /* the end of the fault, or of the peace */
	uint64_t state;
	size_t recoveries;
	size_t refusals; /* that clients got */
	size_t tokens;
};

static unsigned seeds = SEEDS;

/* xorshift64*: the same hour for the same seed. */
static int64_t below(struct hour *hour, int64_t bound)
{
	hour->state ^= hour->state >> 12;
	hour->state ^= hour->state << 25;
	hour->state ^= hour->state >> 27;
	return (int64_t)((hour->state * UINT64_C(0x2545f4914f6cdd1d)) >> 33) % bound;
}

static bool chance(struct hour *hour, int64_t per_mille)
{
	return below(hour, 1000) < per_mille;
}

static struct mint_plan good_plan(struct hour *hour)
{
	return (struct mint_plan){
		.end = MINT_SUCCEEDS,
		.after_ms = below(hour, GOOD_MS),
		.life_ms = chance(hour, 300) ? 400000 + below(hour, 400000) : LIFE_MS,
	};
}

static struct mint_plan plan_of(struct hour *hour, enum fault fault)
{
	struct mint_plan plan = {.end = MINT_FAILS, .after_ms = below(hour, 500)};

	switch (fault) {
	case FAULT_NONE:
	case FAULT_MIXED:
	case FAULT_COUNT:
		return good_plan(hour);
	case FAULT_DOWN:
		break;
	case FAULT_BUSY:
		plan.retry_after_s = below(hour, 61);
		break;
	case FAULT_HANGS:
		plan.after_ms = CALL_MS;
		break;
	case FAULT_REFUSES:
		plan.class = FAILURE_PERMANENT;
		break;
	case FAULT_SHORT:
		plan.end = MINT_SUCCEEDS;
		plan.life_ms = 1000 + below(hour, 60000);
		break;
	}
	return plan;
}

/* A mint that begins from now on meets what there is now. */
static void plan_next(struct hour *hour)
{
	const bool mixed = hour->fault == FAULT_MIXED;

	hour->fixture.plan =
		plan_of(hour, mixed ? (enum fault)below(hour, FAULT_MIXED) : hour->fault);
}

static void note_answers(struct hour *hour, const struct client *client)
{
	if (client->waiting)
		return;
	if (client->status == TOKEN_OK)
		hour->tokens++;
	else
		hour->refusals++;
}

static void ask(struct hour *hour, size_t who, size_t what)
{
	struct client *const client = &hour->clients[who];

	if (client->waiting)
		return;
	plan_next(hour);
	hour->asked[who]++;
	client_ask(client, &hour->fixture.subjects[what]);
	note_answers(hour, client);
}

static void leave(struct hour *hour, size_t who)
{
	if (!hour->clients[who].waiting)
		return;
	client_cancel(&hour->clients[who]);
	hour->asked[who]--;
}

/* One that asks; now and then all at once, or one that goes. */
static void clients_act(struct hour *hour)
{
	const size_t subjects = hour->fixture.subject_count;

	if (chance(hour, 20)) {
		for (size_t i = 0; i < CLIENTS; i++)
			ask(hour, i, i % subjects);
		return;
	}
	if (chance(hour, 50))
		leave(hour, (size_t)below(hour, CLIENTS));
	ask(hour, (size_t)below(hour, CLIENTS), (size_t)below(hour, (int64_t)subjects));
}

/* An old token may be one no more then: who waits for 300 ms may have to for 2.5 s. */
static void step_the_wall_clock(struct hour *hour)
{
	hour->fixture.clock.wall_ms += below(hour, 4000000) - 2000000;
	for (size_t i = 0; i < CLIENTS; i++)
		if (hour->clients[i].waiting)
			hour->clients[i].limit_ms = hour->clients[i].arrived_ms + WAIT_MS;
}

static void expect_nobody_overdue(struct hour *hour)
{
	const struct fixture *const f = &hour->fixture;

	for (size_t i = 0; i < CLIENTS; i++)
		fixture_must(f,
			     !hour->clients[i].waiting ||
				     fixture_now_ms(f) <= hour->clients[i].limit_ms,
			     "a request without an answer");
}

static void pass(struct hour *hour, int64_t ms)
{
	plan_next(hour); /* for the timers that try again */
	fixture_advance(&hour->fixture, ms);
	expect_nobody_overdue(hour);
}

/* Calls that began under the fault end by themselves. */
static void let_calls_end(struct hour *hour)
{
	for (int64_t ms = 0; !list_empty(&hour->fixture.open); ms += 1000) {
		fixture_must(&hour->fixture, ms <= CALL_MS + GOOD_MS, "a mint without an end");
		pass(hour, 1000);
	}
}

/* The hold of each key, and not a moment more. */
static void expect_recovery(struct hour *hour)
{
	struct fixture *const f = &hour->fixture;

	let_calls_end(hour);
	for (size_t i = 0; i < f->subject_count; i++) {
		struct client client = {0};
		const int64_t hold_ms = f->subjects[i].hold_until_ms - fixture_now_ms(f);
		fixture_must(f, hold_ms <= STEP_MAX_MS, "a hold of more than a step");
		if (hold_ms > 0)
			pass(hour, hold_ms);
		f->plan = plan_succeed;
		client_ask(&client, &f->subjects[i]);
		fixture_advance(f, GOOD_MS);
		fixture_must(f, !client.waiting && client.status == TOKEN_OK, "no recovery");
	}
	hour->recoveries++;
}

/* Peace and faults take turns: a fault is of a second to seven minutes. */
static void change_the_weather(struct hour *hour)
{
	if (hour->fault == FAULT_NONE) {
		hour->fault = (enum fault)(1 + below(hour, FAULT_COUNT - 1));
		hour->until_ms = fixture_now_ms(&hour->fixture) + 1000 + below(hour, 420000);
		return;
	}
	hour->fault = FAULT_NONE;
	expect_recovery(hour);
	hour->until_ms = fixture_now_ms(&hour->fixture) + below(hour, 600000);
}

static void tick(struct hour *hour)
{
	static const int64_t spans_ms[] = {20, 200, 1000, 3000, 10000};

	if (fixture_now_ms(&hour->fixture) >= hour->until_ms)
		change_the_weather(hour);
	clients_act(hour);
	if (chance(hour, 4))
		fixture_source_changed(&hour->fixture);
	if (chance(hour, 3))
		step_the_wall_clock(hour);
	pass(hour, 1 + below(hour, spans_ms[below(hour, ARRAY_LEN(spans_ms))]));
}

static void expect_every_answer(struct hour *hour)
{
	pass(hour, WAIT_MS);
	for (size_t i = 0; i < CLIENTS; i++) {
		fixture_must(&hour->fixture, !hour->clients[i].waiting, "a wait without an end");
		fixture_must(&hour->fixture, hour->clients[i].answers == hour->asked[i],
			     "not one answer a request");
	}
}

static void add_subjects(struct fixture *f)
{
	struct token_key key = fixture_key();

	key.service_account = "second@my-project.iam.gserviceaccount.com";
	(void)fixture_add(f, &key, MARGIN_S);
	key.lifetime_s = 600;
	(void)fixture_add(f, &key, 200);
	key.session = NULL;
	(void)fixture_add(f, &key, 30);
}

static void live_an_hour(unsigned seed)
{
	static const enum jitter jitters[] = {JITTER_NONE, JITTER_HALF, JITTER_MOST};
	struct hour hour = {.state = seed * UINT64_C(0x9e3779b97f4a7c15)};
	struct fixture *const f = &hour.fixture;

	fixture_init(f, jitters[seed % ARRAY_LEN(jitters)]);
	f->seed = seed;
	add_subjects(f);
	const int64_t end_ms = fixture_now_ms(f) + HOUR_MS;
	hour.until_ms = fixture_now_ms(f) + below(&hour, 600000);
	for (; fixture_now_ms(f) < end_ms; f->step++)
		tick(&hour);
	hour.fault = FAULT_NONE;
	expect_recovery(&hour);
	expect_every_answer(&hour);
	/* That it was no idle hour. */
	fixture_must(f, hour.recoveries > 2 && hour.tokens > 500, "an hour without events");
	fixture_deinit(f);
}

static void an_hour_of_faults_breaks_no_rule(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= seeds; seed++)
		live_an_hour(seed);
}

int main(void)
{
	const char *const is_long = getenv("POSTERN_LONG");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_hour_of_faults_breaks_no_rule),
	};

	if (is_long && !strcmp(is_long, "1"))
		seeds = SEEDS_LONG;
	return cmocka_run_group_tests_name("fault injection", tests, NULL, NULL);
}
