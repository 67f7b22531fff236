/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wall clock stepped, the machine suspended, clocks that move while they are read: of two deadlines
 * the earlier wins.
 */
#include "broker/token_cache.h"

#include "tests/unit/token_cache_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define HOUR_MS INT64_C(3600000)

static void a_wall_step_forward_of_an_hour_costs_a_mint(void **state)
{
	static const int64_t lefts_ms[] = {LIFE_MS, 3599000, 2000000, 600000, 300000, 30000};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lefts_ms); i++) {
		struct client client = {0};
		AUTO_FIXTURE struct fixture f;
		fixture_init(&f, JITTER_NONE);
		subject_age_to(&f.subjects[0], lefts_ms[i]);
		fixture_advance(&f, 1000);
		f.clock.wall_ms += HOUR_MS;
		f.plan = plan_hang;
		client_ask(&client, &f.subjects[0]);
		assert_true(client.waiting);
		assert_int_equal(f.start_count, 2);
		fixture_finish(&f, &plan_succeed);
		expect_token(&client, 3601);
		/* The new one lives by the clock as it is now. */
		fixture_advance(&f, 3000000);
		client_ask(&client, &f.subjects[0]);
		expect_token(&client, 601);
		assert_int_equal(f.start_count, 2);
	}
}

static void a_wall_step_forward_into_the_margin_is_waited_for_like_any(void **state)
{
	struct client client = {0};
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	subject_age_to(&f.subjects[0], 3600000);
	f.clock.wall_ms += 3400000;
	f.plan = plan_hang;
	client_ask(&client, &f.subjects[0]);
	fixture_advance(&f, WAIT_WITH_OLD_MS);
	expect_token(&client, 199);
	f.clock.wall_ms += 180000;
	client_ask(&client, &f.subjects[0]);
	fixture_advance(&f, WAIT_MS);
	expect_retry_after(&client, 1);
	assert_int_equal(f.start_count, 2);
}

static void a_wall_step_back_of_an_hour_gains_nothing(void **state)
{
	struct client client = {0};
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	subject_age_to(&f.subjects[0], LIFE_MS);
	f.clock.wall_ms -= HOUR_MS;
	for (int64_t left_s = 3601; left_s > 600; left_s--) {
		client_ask(&client, &f.subjects[0]);
		expect_token(&client, left_s);
		fixture_advance(&f, 1000);
	}
	f.plan = plan_hang;
	fixture_advance(&f, 600000);
	client_ask(&client, &f.subjects[0]);
	fixture_advance(&f, WAIT_MS);
	expect_retry_after(&client, 1);
}

static void a_wall_clock_that_steps_to_and_fro_gains_nothing(void **state)
{
	struct client client = {0};
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	subject_age_to(&f.subjects[0], 1000000);
	f.clock.wall_ms += 100000;
	client_ask(&client, &f.subjects[0]);
	expect_token(&client, 900);
	f.clock.wall_ms -= 200000;
	client_ask(&client, &f.subjects[0]);
	expect_token(&client, 1000);
	assert_int_equal(f.start_count, 1);
}

static void a_wall_step_changes_no_wait_and_no_backoff(void **state)
{
	static const int64_t steps_ms[] = {HOUR_MS, -HOUR_MS};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(steps_ms); i++) {
		struct client client = {0};
		AUTO_FIXTURE struct fixture f;
		fixture_init(&f, JITTER_NONE);
		f.plan = plan_hang;
		client_ask(&client, &f.subjects[0]);
		f.clock.wall_ms += steps_ms[i];
		fixture_advance(&f, WAIT_MS - 1);
		assert_true(client.waiting);
		fixture_advance(&f, 1);
		expect_retry_after(&client, 1);
		fixture_finish(&f, &plan_deny);
		f.clock.wall_ms += steps_ms[i];
		fixture_advance(&f, PERMANENT_MS - 1);
		client_ask(&client, &f.subjects[0]);
		expect_status(&client, TOKEN_DENIED);
		fixture_advance(&f, 1);
		client_ask(&client, &f.subjects[0]);
		assert_int_equal(f.start_count, 2);
		client_cancel(&client);
	}
}

/* ltratt/pizauth#47: the timer stood still in a suspend. */
static void a_suspended_machine_finds_its_token_aged(void **state)
{
	/* By how much each clock is ahead on waking, and what is left of 3,601 s then. */
	static const struct {
		int64_t boot_ms;
		int64_t wall_ms;
		int64_t left_s;
	} rows[] = {
		{HOUR_MS / 2, HOUR_MS / 2, 1801},
		{HOUR_MS, HOUR_MS, 1},
		{2 * HOUR_MS, 2 * HOUR_MS, 0},
		{HOUR_MS / 2, 0, 1801},
		{HOUR_MS, 0, 1},
		{2 * HOUR_MS, 0, 0},
		{2 * HOUR_MS, -HOUR_MS, 0},
		{3000000, 3100000, 501},
		{3100000, 3000000, 501},
		{0, 3000000, 601},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct client client = {0};
		AUTO_FIXTURE struct fixture f;
		fixture_init(&f, JITTER_NONE);
		subject_age_to(&f.subjects[0], LIFE_MS);
		f.clock.boot_ms += rows[i].boot_ms;
		f.clock.wall_ms += rows[i].wall_ms;
		fixture_advance(&f, 0);
		client_ask(&client, &f.subjects[0]);
		assert_int_equal(f.start_count, rows[i].left_s > 600 ? 1 : 2);
		assert_int_equal(client.waiting, rows[i].left_s <= 300);
		fixture_advance(&f, MINT_MS);
		expect_token(&client, rows[i].left_s > 300 ? rows[i].left_s : 3601);
	}
}

static void who_waited_over_a_suspend_is_answered_on_waking(void **state)
{
	struct client without = {0};
	struct client with_old = {0};
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	f.plan = plan_hang;
	client_ask(&without, &f.subjects[0]);
	without.limit_ms = fixture_now_ms(&f) + HOUR_MS;
	fixture_suspend(&f, HOUR_MS);
	expect_retry_after(&without, 1);
	fixture_finish(&f, &plan_succeed);
	fixture_advance(&f, LIFE_MS - 200000);
	client_ask(&with_old, &f.subjects[0]);
	with_old.limit_ms = fixture_now_ms(&f) + HOUR_MS;
	/* The old token has expired in its sleep. */
	fixture_suspend(&f, HOUR_MS);
	expect_retry_after(&with_old, 1);
}

static void a_backoff_passes_in_a_suspend(void **state)
{
	struct client client = {0};
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	f.plan = plan_deny;
	client_ask(&client, &f.subjects[0]);
	fixture_advance(&f, MINT_MS);
	fixture_suspend(&f, HOUR_MS);
	f.plan = plan_succeed;
	client_ask(&client, &f.subjects[0]);
	fixture_advance(&f, MINT_MS);
	expect_token(&client, 3601);
}

/* A clock that goes on by tick_ms each time it is read. */
struct ticking_clock {
	struct clock clock;
	int64_t *boot_ms;
	int64_t *wall_ms;
	int64_t tick_ms;
};

static int64_t tick_boot_ms(const struct clock *clock)
{
	const struct ticking_clock *const ticking = (const void *)clock;

	return *ticking->boot_ms += ticking->tick_ms;
}

static int64_t tick_wall_ms(const struct clock *clock)
{
	const struct ticking_clock *const ticking = (const void *)clock;

	return *ticking->wall_ms += ticking->tick_ms;
}

static void expect_no_trace_of_an_end(struct fixture *f, int64_t life_ms, int64_t tick_ms)
{
	const struct ticking_clock ticking = {
		.clock = {.boot_ms = tick_boot_ms, .wall_ms = tick_wall_ms},
		.boot_ms = &f->clock.boot_ms,
		.wall_ms = &f->clock.wall_ms,
		.tick_ms = tick_ms,
	};
	const struct mint_plan plan = {.end = MINT_SUCCEEDS, .life_ms = life_ms};
	struct token_wait wait = {0};
	struct token_answer answer;
	struct client client = {0};

	f->plan = plan_hang;
	client_ask(&client, &f->subjects[0]);
	client.limit_ms = INT64_MAX;
	f->clock_jumps = true;
	f->timers.clock = &ticking.clock;
	/* The answer's own check is that expires_in > 0. */
	fixture_finish(f, &plan);
	expect_status(&client, TOKEN_OK);
	for (int i = 0; i < 50; i++) {
		wait.arrival_ms = f->clock.boot_ms - WAIT_MS;
		assert_true(token_request(f->subjects[0].entry, 1, &wait, &answer));
		assert_true(answer.status != TOKEN_OK || answer.expires_in_s > 0);
	}
	f->timers.clock = &f->clock.clock;
}

static void expires_in_is_above_0_though_the_clock_moves_between_two_looks(void **state)
{
	static const int64_t lives_ms[] = {1000, 1001, 1999, 2000, 31000, LIFE_MS};
	static const int64_t ticks_ms[] = {1, 100, 900, 10000, 2 * HOUR_MS};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lives_ms) * ARRAY_LEN(ticks_ms); i++) {
		AUTO_FIXTURE struct fixture f;
		fixture_init(&f, JITTER_NONE);
		expect_no_trace_of_an_end(&f, lives_ms[i / ARRAY_LEN(ticks_ms)],
					  ticks_ms[i % ARRAY_LEN(ticks_ms)]);
	}
}

static void step_and_ask_again(struct client *client, const struct token_answer *answer)
{
	(void)answer;
	client->then = NULL;
	client->subject->fixture->clock.wall_ms += 2 * HOUR_MS;
	client_ask(client, client->subject);
}

static void a_token_outlasts_its_callbacks_though_it_expires_among_them(void **state)
{
	const struct mint_plan *const plans[] = {&plan_succeed, &plan_fail};

	(void)state;
	for (size_t p = 0; p < ARRAY_LEN(plans); p++) {
		struct client clients[3] = {{.then = step_and_ask_again}};
		AUTO_FIXTURE struct fixture f;
		fixture_init(&f, JITTER_NONE);
		subject_age_to(&f.subjects[0], 200000);
		f.plan = plan_hang;
		for (size_t i = 0; i < ARRAY_LEN(clients); i++)
			client_ask(&clients[i], &f.subjects[0]);
		f.clock_jumps = true;
		/* The first to be called finds it expired. */
		fixture_finish(&f, plans[p]);
		for (size_t i = 1; i < ARRAY_LEN(clients); i++) {
			expect_status(&clients[i], TOKEN_OK);
			assert_string_equal(clients[i].token, f.subjects[0].token);
		}
		if (plans[p]->end == MINT_SUCCEEDS)
			assert_true(clients[0].waiting);
		else
			expect_retry_after(&clients[0], 1);
		client_cancel(&clients[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wall_step_forward_of_an_hour_costs_a_mint),
		cmocka_unit_test(a_wall_step_forward_into_the_margin_is_waited_for_like_any),
		cmocka_unit_test(a_wall_step_back_of_an_hour_gains_nothing),
		cmocka_unit_test(a_wall_clock_that_steps_to_and_fro_gains_nothing),
		cmocka_unit_test(a_wall_step_changes_no_wait_and_no_backoff),
		cmocka_unit_test(a_suspended_machine_finds_its_token_aged),
		cmocka_unit_test(who_waited_over_a_suspend_is_answered_on_waking),
		cmocka_unit_test(a_backoff_passes_in_a_suspend),
		cmocka_unit_test(expires_in_is_above_0_though_the_clock_moves_between_two_looks),
		cmocka_unit_test(a_token_outlasts_its_callbacks_though_it_expires_among_them),
	};

	return cmocka_run_group_tests_name("token cache, clocks", tests, NULL, NULL);
}
