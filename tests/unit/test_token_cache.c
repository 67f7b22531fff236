/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a token is minted, served and refreshed, as long as all goes well.
 */
#include "broker/token_cache.h"

#include "tests/unit/token_cache_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void nothing_is_minted_before_the_first_request(void **state)
{
	struct client client = {0};
	AUTO_FIXTURE struct fixture f;
	struct token_info info;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	fixture_source_changed(&f);
	token_entry_info(f.subjects[0].entry, MARGIN_S, &info);
	fixture_advance(&f, 24 * LIFE_MS);
	assert_int_equal(f.start_count, 0);
	client_ask(&client, &f.subjects[0]);
	assert_int_equal(f.start_count, 1);
	assert_true(client.waiting);
	fixture_advance(&f, MINT_MS);
	expect_token(&client, 3601);
}

static void a_token_that_nobody_asks_for_is_not_refreshed(void **state)
{
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	subject_age_to(&f.subjects[0], LIFE_MS);
	fixture_advance(&f, 2 * LIFE_MS);
	assert_int_equal(f.start_count, 1);
}

static void expires_in_is_recomputed_at_every_serve_and_rounded_down(void **state)
{
	static const struct {
		int64_t left_ms;
		int64_t expires_in_s;
	} rows[] = {
		{3601000, 3601}, {3600999, 3600}, {3600001, 3600},
		{3600000, 3600}, {3599999, 3599}, {600001, 600},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct client client = {0};
		AUTO_FIXTURE struct fixture f;
		fixture_init(&f, JITTER_NONE);
		subject_age_to(&f.subjects[0], rows[i].left_ms);
		client_ask(&client, &f.subjects[0]);
		expect_token(&client, rows[i].expires_in_s);
		assert_int_equal(f.start_count, 1);
	}
}

static void a_refresh_starts_behind_a_request_at_twice_the_margin(void **state)
{
	struct client client = {0};
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	subject_age_to(&f.subjects[0], 2 * MARGIN_MS + 1);
	client_ask(&client, &f.subjects[0]);
	expect_token(&client, 600);
	assert_int_equal(f.start_count, 1);
	fixture_advance(&f, 1);
	for (int i = 0; i < 100; i++) {
		client_ask(&client, &f.subjects[0]);
		expect_token(&client, i ? 599 : 600);
		assert_string_equal(client.token, "token-1-of-0");
		assert_int_equal(f.start_count, 2);
		fixture_advance(&f, i ? 0 : 1);
	}
	fixture_advance(&f, MINT_MS);
	client_ask(&client, &f.subjects[0]);
	assert_string_equal(client.token, "token-2-of-0");
	assert_int_equal(f.start_count, 2);
}

static void at_the_margin_a_request_waits_for_the_new_token(void **state)
{
	struct client above = {0};
	struct client at = {0};
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	f.plan = plan_hang;
	subject_age_to(&f.subjects[0], MARGIN_MS + 1);
	client_ask(&above, &f.subjects[0]);
	expect_token(&above, 300);
	fixture_advance(&f, 1);
	client_ask(&at, &f.subjects[0]);
	assert_true(at.waiting);
	fixture_advance(&f, 299);
	assert_true(at.waiting);
	fixture_finish(&f, &plan_succeed);
	expect_token(&at, 3601);
	assert_int_equal(f.start_count, 2);
}

static void the_wait_is_measured_from_the_arrival(void **state)
{
	static const struct {
		int64_t left_ms;
		int64_t arrived_ms_ago;
		int64_t waits_ms;
		enum token_status status;
	} rows[] = {
		{200000, 0, 300, TOKEN_OK},
		{200000, 299, 1, TOKEN_OK},
		{200000, 300, 0, TOKEN_OK},
		{200000, 9000, 0, TOKEN_OK},
		{0, 0, 2500, TOKEN_UNAVAILABLE},
		{0, 1000, 1500, TOKEN_UNAVAILABLE},
		{0, 2499, 1, TOKEN_UNAVAILABLE},
		{0, 2500, 0, TOKEN_UNAVAILABLE},
		{0, 86400, 0, TOKEN_UNAVAILABLE},
		{29999, 0, 2500, TOKEN_UNAVAILABLE},
		{29999, 2400, 100, TOKEN_UNAVAILABLE},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct client client = {0};
		AUTO_FIXTURE struct fixture f;
		fixture_init(&f, JITTER_NONE);
		subject_age_to(&f.subjects[0], rows[i].left_ms);
		f.plan = plan_hang;
		client_ask_since(&client, &f.subjects[0],
				 fixture_now_ms(&f) - rows[i].arrived_ms_ago);
		assert_int_equal(client.waiting, rows[i].waits_ms > 0);
		const int64_t asked_ms = fixture_now_ms(&f);
		fixture_advance(&f, WAIT_MS);
		expect_status(&client, rows[i].status);
		assert_int_equal(client.answered_ms - asked_ms, rows[i].waits_ms);
		assert_int_equal(f.start_count, 2);
	}
}

static void a_mint_that_is_late_fills_the_cache_all_the_same(void **state)
{
	struct client client = {0};
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	f.plan.after_ms = WAIT_MS + 1;
	client_ask(&client, &f.subjects[0]);
	fixture_advance(&f, WAIT_MS);
	expect_retry_after(&client, 1);
	fixture_advance(&f, 1);
	client_ask(&client, &f.subjects[0]);
	expect_token(&client, 3601);
	assert_int_equal(client.answers, 2);
	assert_int_equal(f.start_count, 1);
}

/* A request every 10 ms for 20 s, as clients do that find their token too short. */
static void a_storm_at_a_short_life(int64_t life_ms, int64_t margin_s)
{
	struct client client = {0};
	AUTO_FIXTURE struct fixture f;
	const struct token_key key = {
		.service_account = "short@my-project.iam.gserviceaccount.com",
		.scopes = fixture_key().scopes,
		.delegates = fixture_key().delegates,
		.lifetime_s = 300,
	};
	unsigned served = 0;

	fixture_init(&f, JITTER_NONE);
	struct subject *const subject = fixture_add(&f, &key, margin_s);
	f.plan.life_ms = life_ms;
	f.plan.after_ms = 1;
	for (int i = 0; i < 2000; i++) {
		client_ask(&client, subject);
		fixture_advance(&f, 10);
		assert_false(client.waiting);
		served += client.status == TOKEN_OK;
	}
	/* Two mints a second at the most. */
	assert_in_range(f.start_count, 1, 42);
	if (life_ms >= 2000)
		assert_int_equal(served, 2000);
}

/* apache/arrow-rs#6625: a margin as long as the server's made each call a refresh. */
static void short_lived_tokens_do_not_become_a_mint_a_request(void **state)
{
	static const struct {
		int64_t life_ms;
		int64_t margin_s;
	} rows[] = {
		{1000, 300},   {1001, 300},   {1999, 300},   {2000, 300},   {29000, 300},
		{30000, 300},  {31000, 300},  {60000, 300},  {300000, 300}, {300001, 300},
		{450000, 300}, {600000, 300}, {600001, 300}, {60000, 100},  {150000, 100},
		{5000, 1},     {1000, 1},     {29000, 10},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		a_storm_at_a_short_life(rows[i].life_ms, rows[i].margin_s);
}

/* GoogleCloudPlatform/esp-v2#137: a token with hardly any life, and a hot loop. */
static void a_life_of_29_s_is_served_to_those_who_waited_and_for_a_second(void **state)
{
	struct client client = {0};
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	f.plan.life_ms = 29000;
	client_ask(&client, &f.subjects[0]);
	fixture_advance(&f, MINT_MS);
	expect_token(&client, 29);
	/* An old token now: the next request waits for another, which is no better and is kept. */
	client_ask(&client, &f.subjects[0]);
	fixture_advance(&f, MINT_MS);
	expect_token(&client, 29);
	assert_int_equal(f.start_count, 2);
	fixture_advance(&f, 999);
	client_ask(&client, &f.subjects[0]);
	expect_token(&client, 28);
	assert_int_equal(f.start_count, 2);
	fixture_advance(&f, 1);
	f.plan = plan_fail;
	client_ask(&client, &f.subjects[0]);
	assert_int_equal(f.start_count, 3);
	fixture_advance(&f, MINT_MS);
	expect_retry_after(&client, 1);
}

/* refresh_margin may be as little as 1 s: more than it is served, whatever 30 s mean to old tokens. */
static void a_margin_below_30_s_is_served_down_to_the_margin(void **state)
{
	struct client client = {0};
	AUTO_FIXTURE struct fixture f;
	const struct token_key key = {
		.service_account = "brisk@my-project.iam.gserviceaccount.com",
		.scopes = fixture_key().scopes,
		.delegates = fixture_key().delegates,
		.lifetime_s = 3600,
	};

	(void)state;
	fixture_init(&f, JITTER_NONE);
	struct subject *const subject = fixture_add(&f, &key, 10);
	subject_age_to(subject, 40000);
	f.plan = plan_hang;
	for (int64_t left_s = 40; left_s > 10; left_s--) {
		client_ask(&client, subject);
		expect_token(&client, left_s);
		assert_int_equal(f.start_count, left_s > 20 ? 1 : 2);
		fixture_advance(&f, 1000);
	}
	client_ask(&client, subject);
	fixture_advance(&f, WAIT_MS);
	expect_retry_after(&client, 1);
}

static void the_state_of_an_entry_follows_its_token(void **state)
{
	static const struct {
		int64_t left_ms;
		const char *name;
	} rows[] = {
		{LIFE_MS, "fresh"}, {300001, "fresh"}, {300000, "stale"},
		{1, "stale"},	    {0, "expired"},    {-1000, "expired"},
	};
	struct token_info info;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_FIXTURE struct fixture f;
		fixture_init(&f, JITTER_NONE);
		token_entry_info(f.subjects[0].entry, MARGIN_S, &info);
		assert_string_equal(info.state, "none");
		assert_false(info.failed);
		const int64_t minted_wall_ms = f.clock.wall_ms;
		subject_age_to(&f.subjects[0], rows[i].left_ms);
		token_entry_info(f.subjects[0].entry, MARGIN_S, &info);
		assert_string_equal(info.state, rows[i].name);
		assert_false(info.failed);
		assert_int_equal(info.expires_wall_ms, minted_wall_ms + LIFE_MS);
		assert_int_equal(info.refresh_wall_ms, minted_wall_ms + LIFE_MS - 2 * MARGIN_MS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_minted_before_the_first_request),
		cmocka_unit_test(a_token_that_nobody_asks_for_is_not_refreshed),
		cmocka_unit_test(expires_in_is_recomputed_at_every_serve_and_rounded_down),
		cmocka_unit_test(a_refresh_starts_behind_a_request_at_twice_the_margin),
		cmocka_unit_test(at_the_margin_a_request_waits_for_the_new_token),
		cmocka_unit_test(the_wait_is_measured_from_the_arrival),
		cmocka_unit_test(a_mint_that_is_late_fills_the_cache_all_the_same),
		cmocka_unit_test(short_lived_tokens_do_not_become_a_mint_a_request),
		cmocka_unit_test(a_life_of_29_s_is_served_to_those_who_waited_and_for_a_second),
		cmocka_unit_test(a_margin_below_30_s_is_served_down_to_the_margin),
		cmocka_unit_test(the_state_of_an_entry_follows_its_token),
	};

	return cmocka_run_group_tests_name("token cache", tests, NULL, NULL);
}
