/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After a mint has failed: when the next one may start, what starts it, and what is said meanwhile.
 */
#include "broker/token_cache.h"

#include "tests/unit/token_cache_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* A mint that fails, started by a request now; returns when it has. */
static void fail_one(struct fixture *f, struct client *client, const struct mint_plan *plan)
{
	const size_t starts = f->start_count;

	f->plan = plan_hang;
	client_ask(client, &f->subjects[0]);
	assert_int_equal(f->start_count, starts + 1);
	fixture_finish(f, plan);
	assert_false(client->waiting);
}

/* No try within hold_ms, however often it is asked; the first request after it is one. */
static void expect_hold(struct fixture *f, int64_t hold_ms)
{
	const size_t starts = f->start_count;
	struct client client = {0};

	f->plan = plan_hang;
	for (int64_t rest_ms = hold_ms; rest_ms > 0;) {
		/* So that it is asked a millisecond before it is over, too. */
		int64_t step_ms = rest_ms > 97 ? 97 : rest_ms - 1;
		if (step_ms == 0)
			step_ms = 1;
		client_ask(&client, &f->subjects[0]);
		expect_retry_after(&client, (rest_ms + 999) / 1000);
		fixture_advance(f, step_ms);
		assert_int_equal(f->start_count, starts);
		rest_ms -= step_ms;
	}
	client_ask(&client, &f->subjects[0]);
	assert_int_equal(f->start_count, starts + 1);
	client_cancel(&client);
}

static void check_backoffs(enum jitter jitter, int64_t jitter_ms)
{
	static const int64_t backoffs_s[] = {1, 2, 4, 8, 16, 32, 32, 32};
	struct client client = {0};
	AUTO_FIXTURE struct fixture f;

	fixture_init(&f, jitter);
	fail_one(&f, &client, &plan_fail);
	for (size_t i = 0; i < ARRAY_LEN(backoffs_s); i++) {
		expect_hold(&f, backoffs_s[i] * 1000 + jitter_ms);
		fixture_finish(&f, &plan_fail);
	}
}

static void the_backoff_doubles_from_1_to_32_s(void **state)
{
	(void)state;
	check_backoffs(JITTER_NONE, 0);
}

static void jitter_comes_on_top_of_the_backoff(void **state)
{
	(void)state;
	check_backoffs(JITTER_HALF, 500);
	check_backoffs(JITTER_MOST, 1000);
}

static void what_upstream_asks_for_counts_where_it_is_longer(void **state)
{
	static const struct {
		int64_t asked_s;
		int64_t holds_s[2];
	} rows[] = {
		{0, {1, 2}}, {1, {1, 2}}, {2, {2, 2}}, {5, {5, 5}}, {59, {59, 59}}, {60, {60, 60}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct client client = {0};
		AUTO_FIXTURE struct fixture f;
		struct mint_plan plan = plan_fail;
		fixture_init(&f, JITTER_NONE);
		plan.retry_after_s = rows[i].asked_s;
		fail_one(&f, &client, &plan);
		expect_retry_after(&client, rows[i].holds_s[0]);
		expect_hold(&f, rows[i].holds_s[0] * 1000);
		fixture_finish(&f, &plan);
		expect_hold(&f, rows[i].holds_s[1] * 1000);
	}
}

static void a_success_begins_the_backoff_anew(void **state)
{
	struct client client = {0};
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	fail_one(&f, &client, &plan_fail);
	expect_hold(&f, 1000);
	fixture_finish(&f, &plan_fail);
	expect_hold(&f, 2000);
	fixture_finish(&f, &plan_succeed);
	fixture_advance(&f, LIFE_MS);
	fail_one(&f, &client, &plan_fail);
	expect_hold(&f, 1000);
}

static void without_a_token_only_a_request_starts_the_next_try(void **state)
{
	struct client client = {0};
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	fail_one(&f, &client, &plan_fail);
	fixture_advance(&f, LIFE_MS);
	assert_int_equal(f.start_count, 1);
	client_ask(&client, &f.subjects[0]);
	assert_int_equal(f.start_count, 2);
}

static void an_unexpired_token_is_refreshed_by_a_timer(void **state)
{
	static const int64_t backoffs_ms[] = {1000, 2000, 4000, 8000, 16000, 32000, 32000};
	struct client client = {0};
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	subject_age_to(&f.subjects[0], 500000);
	fail_one(&f, &client, &plan_fail);
	expect_token(&client, 500);
	f.plan = plan_fail;
	for (size_t i = 0; i < ARRAY_LEN(backoffs_ms); i++) {
		fixture_advance(&f, backoffs_ms[i] - 1);
		assert_int_equal(f.start_count, i + 2);
		fixture_advance(&f, 1);
		assert_int_equal(f.start_count, i + 3);
		fixture_advance(&f, MINT_MS);
	}
	f.plan = plan_succeed;
	fixture_advance(&f, 32000 + MINT_MS);
	client_ask(&client, &f.subjects[0]);
	expect_token(&client, 3601);
}

static void the_timer_ends_with_the_token(void **state)
{
	struct client client = {0};
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	subject_age_to(&f.subjects[0], 40000);
	f.plan = plan_fail;
	client_ask(&client, &f.subjects[0]);
	const int64_t expiry_ms = fixture_now_ms(&f) + 40000;
	fixture_advance(&f, LIFE_MS);
	expect_token(&client, 39);
	assert_true(f.start_count > 3);
	assert_true(f.starts[f.start_count - 1].at_ms < expiry_ms);
}

static void a_storm_during_the_hold_starts_nothing(void **state)
{
	struct client client = {0};
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	for (unsigned round = 0; round < 6; round++) {
		fail_one(&f, &client, &plan_fail);
		for (int i = 0; i < 1000; i++) {
			client_ask(&client, &f.subjects[0]);
			expect_retry_after(&client, INT64_C(1) << round);
		}
		assert_int_equal(f.start_count, round + 1);
		fixture_advance(&f, INT64_C(1000) << round);
	}
}

static void the_old_token_is_served_at_once_during_the_hold(void **state)
{
	struct client client = {0};
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	subject_age_to(&f.subjects[0], 200000);
	fail_one(&f, &client, &plan_deny);
	for (int64_t left_s = 200; left_s > 170; left_s--) {
		client_ask(&client, &f.subjects[0]);
		expect_token(&client, left_s);
		fixture_advance(&f, 1000);
	}
	assert_int_equal(f.start_count, 2);
}

/* hashicorp/terraform-provider-google#15042: a new grant takes minutes to count. */
static void a_permanent_failure_is_kept_for_30_s(void **state)
{
	struct client client = {0};
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_MOST);
	for (size_t round = 1; round < 4; round++) {
		fail_one(&f, &client, &plan_deny);
		expect_status(&client, TOKEN_DENIED);
		for (int i = 0; i < 1000; i++) {
			client_ask(&client, &f.subjects[0]);
			expect_status(&client, TOKEN_DENIED);
			assert_int_equal(client.why, FAILURE_NOT_ALLOWED);
			assert_string_equal(client.ref, f.starts[round - 1].ref);
			fixture_advance(&f, i ? 0 : 29999);
		}
		assert_int_equal(f.start_count, round);
		fixture_advance(&f, 1);
	}
}

static void a_kept_failure_is_not_told_while_a_new_mint_is_under_way(void **state)
{
	struct client client = {0};
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	fail_one(&f, &client, &plan_deny);
	fixture_advance(&f, PERMANENT_MS);
	f.plan = plan_hang;
	client_ask(&client, &f.subjects[0]);
	fixture_advance(&f, WAIT_MS);
	expect_retry_after(&client, 1);
	assert_string_equal(client.ref, f.starts[1].ref);
}

static void what_failed_is_named_until_a_mint_succeeds(void **state)
{
	struct client client = {0};
	AUTO_FIXTURE struct fixture f;
	struct token_info info;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	fail_one(&f, &client, &plan_deny);
	const int64_t failed_wall_ms = f.clock.wall_ms;
	fixture_advance(&f, PERMANENT_MS);
	token_entry_info(f.subjects[0].entry, MARGIN_S, &info);
	assert_string_equal(info.state, "none");
	assert_true(info.failed);
	assert_string_equal(info.failure_ref, f.starts[0].ref);
	assert_int_equal(info.failure->class, FAILURE_PERMANENT);
	assert_int_equal(info.failure_wall_ms, failed_wall_ms);
	client_ask(&client, &f.subjects[0]);
	fixture_finish(&f, &plan_succeed);
	token_entry_info(f.subjects[0].entry, MARGIN_S, &info);
	assert_string_equal(info.state, "fresh");
	assert_false(info.failed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_backoff_doubles_from_1_to_32_s),
		cmocka_unit_test(jitter_comes_on_top_of_the_backoff),
		cmocka_unit_test(what_upstream_asks_for_counts_where_it_is_longer),
		cmocka_unit_test(a_success_begins_the_backoff_anew),
		cmocka_unit_test(without_a_token_only_a_request_starts_the_next_try),
		cmocka_unit_test(an_unexpired_token_is_refreshed_by_a_timer),
		cmocka_unit_test(the_timer_ends_with_the_token),
		cmocka_unit_test(a_storm_during_the_hold_starts_nothing),
		cmocka_unit_test(the_old_token_is_served_at_once_during_the_hold),
		cmocka_unit_test(a_permanent_failure_is_kept_for_30_s),
		cmocka_unit_test(a_kept_failure_is_not_told_while_a_new_mint_is_under_way),
		cmocka_unit_test(what_failed_is_named_until_a_mint_succeeds),
	};

	return cmocka_run_group_tests_name("token cache, failures", tests, NULL, NULL);
}
