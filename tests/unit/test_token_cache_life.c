/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A token's life of 3,601 s, stepped second by second, with the mint of its successor in good health,
 * failing or hanging.
 */
#include "broker/token_cache.h"

#include "tests/unit/token_cache_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Where an outage begins: what is left of the token then, in seconds. */
static const int64_t outages_s[] = {
	3601, 601, 600, 599, 301, 300, 299, 61, 60, 59, 32, 31, 30, 29, 2, 1, 0, -1,
};

static void a_healthy_life_is_served_at_every_second_and_refreshed_once(void **state)
{
	struct client client = {0};
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	subject_age_to(&f.subjects[0], LIFE_MS);
	for (int64_t left_s = 3601; left_s >= 600; left_s--) {
		client_ask(&client, &f.subjects[0]);
		expect_token(&client, left_s);
		assert_int_equal(f.start_count, left_s > 600 ? 1 : 2);
		fixture_advance(&f, 1000);
	}
	/* The next life began MINT_MS after the request at 600 s. */
	for (int64_t left_s = 3600; left_s >= 599; left_s--) {
		client_ask(&client, &f.subjects[0]);
		expect_token(&client, left_s);
		assert_string_equal(client.token, "token-2-of-0");
		assert_int_equal(f.start_count, left_s > 599 ? 2 : 3);
		fixture_advance(&f, 1000);
	}
}

/* Whether the token of so much life left is an old one that may still be given. */
static bool may_be_given(int64_t left_ms)
{
	return left_ms >= FLOOR_MS;
}

/* The first request in a token's last left_s, with a mint that ends by plan: what comes of it, when. */
static void check_first_request(int64_t left_s, const struct mint_plan *plan)
{
	struct client client = {0};
	AUTO_FIXTURE struct fixture f;
	const int64_t left_ms = left_s * 1000;

	fixture_init(&f, JITTER_NONE);
	subject_age_to(&f.subjects[0], left_ms);
	f.plan = *plan;
	client_ask(&client, &f.subjects[0]);
	assert_int_equal(f.start_count, left_s > 600 ? 1 : 2);
	if (left_s > 300) {
		expect_token(&client, left_s);
		return;
	}
	assert_true(client.waiting);
	fixture_advance(&f, plan->end == MINT_HANGS ? WAIT_MS : MINT_MS);
	if (plan->end == MINT_SUCCEEDS) {
		expect_token(&client, 3601);
		assert_int_equal(client.answered_ms - client.arrived_ms, MINT_MS);
		return;
	}
	const int64_t old_ms = left_ms - (plan->end == MINT_HANGS ? WAIT_WITH_OLD_MS : MINT_MS);
	if (may_be_given(old_ms))
		expect_token(&client, old_ms / 1000);
	else if (plan->end == MINT_FAILS && plan->class == FAILURE_PERMANENT)
		expect_status(&client, TOKEN_DENIED);
	else
		expect_retry_after(&client, 1);
	assert_int_equal(client.answered_ms - client.arrived_ms,
			 plan->end == MINT_FAILS ? MINT_MS :
			 may_be_given(old_ms)	 ? WAIT_WITH_OLD_MS :
						   WAIT_MS);
	assert_int_equal(f.start_count, 2);
}

static void the_first_request_of_any_second_is_answered_as_it_must_be(void **state)
{
	const struct mint_plan *const plans[] = {&plan_succeed, &plan_fail, &plan_deny, &plan_hang};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(plans); i++)
		for (int64_t left_s = 3601; left_s >= -5; left_s -= left_s > 700 ? 29 : 1)
			check_first_request(left_s, plans[i]);
}

static enum token_status status_in_outage(const struct mint_plan *plan)
{
	return plan->end == MINT_FAILS && plan->class == FAILURE_PERMANENT ? TOKEN_DENIED :
									     TOKEN_UNAVAILABLE;
}

/*
 * A request at every second from outage_s on, until 70 s after the token's end: with 30 s at the time of
 * the answer it is given, else there is an error.
 */
static void step_through_outage(struct fixture *f, int64_t outage_s, const struct mint_plan *plan)
{
	/* Each asks every fourth second: the longest wait is over by then. */
	struct client clients[4] = {0};

	for (int64_t left_s = outage_s; left_s >= -70; left_s--) {
		const size_t n = (size_t)(outage_s - left_s);
		struct client *const client = &clients[n % 4];
		client_ask(client, &f->subjects[0]);
		if (left_s > 300)
			expect_token(client, left_s);
		fixture_advance(f, 1000);
		if (left_s > 30)
			expect_status(client, TOKEN_OK);
		if (n >= 3 && left_s + 3 < 30)
			expect_status(&clients[(n + 1) % 4], status_in_outage(plan));
	}
	fixture_advance(f, WAIT_MS);
}

/* Each of an outage's mints against the one before: when that failed, and what came of it. */
static void check_starts(const struct fixture *f, const struct mint_plan *plan, int64_t expiry_ms)
{
	static const int64_t backoffs_ms[] = {1000, 2000, 4000, 8000, 16000, 32000};
	const bool permanent = plan->class == FAILURE_PERMANENT;
	size_t failures = 0;

	for (size_t i = 1; i + 1 < f->start_count; i++) {
		const int64_t failed_ms = f->starts[i].at_ms + MINT_MS;
		const int64_t over_ms =
			failed_ms + (permanent ? PERMANENT_MS : backoffs_ms[failures]);
		if (failures + 1 < ARRAY_LEN(backoffs_ms))
			failures++;
		/* By the timer to the millisecond, else by the next request, one each second. */
		const bool timed = !permanent && over_ms < expiry_ms;
		assert_in_range(f->starts[i + 1].at_ms, over_ms, over_ms + (timed ? 0 : 999));
	}
}

static void an_outage(int64_t outage_s, const struct mint_plan *plan)
{
	struct client client = {0};
	AUTO_FIXTURE struct fixture f;

	fixture_init(&f, JITTER_NONE);
	subject_age_to(&f.subjects[0], outage_s * 1000);
	const int64_t expiry_ms = fixture_now_ms(&f) + outage_s * 1000;
	f.plan = *plan;
	step_through_outage(&f, outage_s, plan);
	if (plan->end == MINT_HANGS) {
		assert_int_equal(f.start_count, 2);
		fixture_finish(&f, &plan_fail);
	} else {
		assert_true(f.start_count > 2);
		check_starts(&f, plan, expiry_ms);
	}
	/* It ends: after one step of the backoff at the most all is well. */
	f.plan = plan_succeed;
	fixture_advance(&f, 33000);
	client_ask(&client, &f.subjects[0]);
	fixture_advance(&f, MINT_MS);
	expect_status(&client, TOKEN_OK);
}

static void a_mint_that_fails_for_now_from_any_point_on(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(outages_s); i++)
		an_outage(outages_s[i], &plan_fail);
}

static void a_mint_that_fails_for_good_from_any_point_on(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(outages_s); i++)
		an_outage(outages_s[i], &plan_deny);
}

static void a_mint_that_hangs_from_any_point_on(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(outages_s); i++)
		an_outage(outages_s[i], &plan_hang);
}

static void a_wait_with_an_old_token_that_runs_low_lasts_as_long_as_one_without(void **state)
{
	struct client client = {0};
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	subject_age_to(&f.subjects[0], FLOOR_MS + WAIT_WITH_OLD_MS - 1);
	f.plan = plan_hang;
	client_ask(&client, &f.subjects[0]);
	fixture_advance(&f, WAIT_MS - 1);
	assert_true(client.waiting);
	fixture_finish(&f, &plan_succeed);
	expect_token(&client, 3601);
}

static void an_old_token_with_30_s_to_the_millisecond_is_given(void **state)
{
	static const struct {
		const struct mint_plan *plan;
		int64_t waits_ms;
	} rows[] = {
		{&plan_hang, WAIT_WITH_OLD_MS},
		{&plan_fail, MINT_MS},
		{&plan_deny, MINT_MS},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct client client = {0};
		AUTO_FIXTURE struct fixture f;
		fixture_init(&f, JITTER_NONE);
		subject_age_to(&f.subjects[0], FLOOR_MS + rows[i].waits_ms);
		f.plan = *rows[i].plan;
		client_ask(&client, &f.subjects[0]);
		fixture_advance(&f, rows[i].waits_ms);
		expect_token(&client, 30);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_healthy_life_is_served_at_every_second_and_refreshed_once),
		cmocka_unit_test(the_first_request_of_any_second_is_answered_as_it_must_be),
		cmocka_unit_test(a_mint_that_fails_for_now_from_any_point_on),
		cmocka_unit_test(a_mint_that_fails_for_good_from_any_point_on),
		cmocka_unit_test(a_mint_that_hangs_from_any_point_on),
		cmocka_unit_test(
			a_wait_with_an_old_token_that_runs_low_lasts_as_long_as_one_without),
		cmocka_unit_test(an_old_token_with_30_s_to_the_millisecond_is_given),
	};

	return cmocka_run_group_tests_name("token cache, a life", tests, NULL, NULL);
}
