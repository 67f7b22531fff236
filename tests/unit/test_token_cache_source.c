/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A change of the source: every kept failure goes at once.
 */
#include "broker/token_cache.h"

#include "tests/unit/token_cache_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct mint_plan plan_fail_for(int64_t retry_after_s)
{
	struct mint_plan plan = plan_fail;

	plan.retry_after_s = retry_after_s;
	return plan;
}

static void every_kept_failure_goes_at_once(void **state)
{
	const struct mint_plan plans[] = {plan_fail, plan_fail_for(60), plan_deny};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(plans); i++) {
		struct client client = {0};
		AUTO_FIXTURE struct fixture f;
		fixture_init(&f, JITTER_MOST);
		f.plan = plans[i];
		client_ask(&client, &f.subjects[0]);
		fixture_advance(&f, MINT_MS);
		assert_true(client.status != TOKEN_OK);
		client_ask(&client, &f.subjects[0]);
		assert_int_equal(f.start_count, 1);
		fixture_source_changed(&f);
		f.plan = plan_succeed;
		client_ask(&client, &f.subjects[0]);
		assert_int_equal(f.start_count, 2);
		fixture_advance(&f, MINT_MS);
		expect_token(&client, 3601);
	}
}

static void it_is_so_for_every_entry(void **state)
{
	struct client clients[5] = {0};
	AUTO_FIXTURE struct fixture f;
	char name[] = "agent-0@my-project.iam.gserviceaccount.com";
	struct token_key key = fixture_key();

	(void)state;
	fixture_init(&f, JITTER_NONE);
	key.service_account = name;
	for (; f.subject_count < ARRAY_LEN(clients); name[6]++)
		(void)fixture_add(&f, &key, MARGIN_S);
	f.plan = plan_deny;
	for (size_t i = 0; i < ARRAY_LEN(clients); i++)
		client_ask(&clients[i], &f.subjects[i]);
	fixture_advance(&f, MINT_MS);
	fixture_source_changed(&f);
	f.plan = plan_succeed;
	for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
		expect_status(&clients[i], TOKEN_DENIED);
		client_ask(&clients[i], &f.subjects[i]);
	}
	assert_int_equal(f.start_count, 2 * ARRAY_LEN(clients));
	fixture_advance(&f, MINT_MS);
	for (size_t i = 0; i < ARRAY_LEN(clients); i++)
		expect_token(&clients[i], 3601);
}

static void the_backoff_begins_anew(void **state)
{
	struct client client = {0};
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	f.plan = plan_fail;
	for (int i = 0; i < 5; i++) {
		client_ask(&client, &f.subjects[0]);
		fixture_advance(&f, MINT_MS);
		fixture_advance(&f, INT64_C(1000) << i);
	}
	fixture_source_changed(&f);
	client_ask(&client, &f.subjects[0]);
	fixture_advance(&f, MINT_MS);
	expect_retry_after(&client, 1);
}

static void a_refresh_that_waits_for_its_backoff_goes_at_once(void **state)
{
	struct client client = {0};
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	subject_age_to(&f.subjects[0], 500000);
	f.plan = plan_fail_for(60);
	client_ask(&client, &f.subjects[0]);
	fixture_advance(&f, MINT_MS + 10000);
	assert_int_equal(f.start_count, 2);
	fixture_source_changed(&f);
	f.plan = plan_succeed;
	fixture_advance(&f, 0);
	assert_int_equal(f.start_count, 3);
	fixture_advance(&f, 60000);
	assert_int_equal(f.start_count, 3);
}

static void a_request_that_comes_first_takes_the_place_of_that_refresh(void **state)
{
	struct client client = {0};
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	subject_age_to(&f.subjects[0], 500000);
	f.plan = plan_fail;
	client_ask(&client, &f.subjects[0]);
	fixture_advance(&f, MINT_MS);
	fixture_source_changed(&f);
	f.plan = plan_hang;
	client_ask(&client, &f.subjects[0]);
	fixture_finish(&f, &plan_succeed);
	fixture_advance(&f, 100000);
	assert_int_equal(f.start_count, 3);
}

static void the_failure_of_a_mint_of_the_old_source_says_nothing(void **state)
{
	const struct mint_plan plans[] = {plan_fail, plan_fail_for(60), plan_deny};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(plans); i++) {
		struct client first = {0};
		struct client second = {0};
		AUTO_FIXTURE struct fixture f;
		fixture_init(&f, JITTER_NONE);
		f.plan = plan_hang;
		client_ask(&first, &f.subjects[0]);
		fixture_source_changed(&f);
		client_ask(&second, &f.subjects[0]);
		assert_int_equal(f.start_count, 1);
		fixture_finish(&f, &plans[i]);
		/* Who waits is not told; the new source is asked. */
		assert_true(first.waiting && second.waiting);
		assert_int_equal(f.start_count, 2);
		assert_string_not_equal(f.starts[0].ref, f.starts[1].ref);
		fixture_finish(&f, &plan_succeed);
		expect_token(&first, 3601);
		expect_token(&second, 3601);
	}
}

static void it_says_nothing_to_the_next_request_either(void **state)
{
	struct client client = {0};
	AUTO_FIXTURE struct fixture f;
	struct token_info info;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	f.plan = plan_hang;
	client_ask(&client, &f.subjects[0]);
	client_cancel(&client);
	fixture_source_changed(&f);
	fixture_finish(&f, &plan_deny);
	token_entry_info(f.subjects[0].entry, MARGIN_S, &info);
	assert_false(info.failed);
	client_ask(&client, &f.subjects[0]);
	assert_true(client.waiting);
	fixture_finish(&f, &plan_succeed);
	expect_token(&client, 3601);
}

static void the_wait_goes_on_from_its_arrival(void **state)
{
	struct client client = {0};
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	f.plan = plan_hang;
	client_ask(&client, &f.subjects[0]);
	fixture_advance(&f, 2000);
	fixture_source_changed(&f);
	fixture_finish(&f, &plan_deny);
	fixture_advance(&f, 499);
	assert_true(client.waiting);
	fixture_advance(&f, 1);
	expect_retry_after(&client, 1);
	assert_string_equal(client.ref, f.starts[1].ref);
}

static void the_failure_of_a_mint_of_the_new_source_is_kept(void **state)
{
	struct client client = {0};
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	f.plan = plan_hang;
	client_ask(&client, &f.subjects[0]);
	fixture_source_changed(&f);
	fixture_finish(&f, &plan_deny);
	fixture_finish(&f, &plan_deny);
	expect_status(&client, TOKEN_DENIED);
	client_ask(&client, &f.subjects[0]);
	expect_status(&client, TOKEN_DENIED);
	assert_int_equal(f.start_count, 2);
}

static void a_token_in_the_cache_stays(void **state)
{
	struct client client = {0};
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	subject_age_to(&f.subjects[0], 2000000);
	fixture_source_changed(&f);
	client_ask(&client, &f.subjects[0]);
	expect_token(&client, 2000);
	assert_int_equal(f.start_count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kept_failure_goes_at_once),
		cmocka_unit_test(it_is_so_for_every_entry),
		cmocka_unit_test(the_backoff_begins_anew),
		cmocka_unit_test(a_refresh_that_waits_for_its_backoff_goes_at_once),
		cmocka_unit_test(a_request_that_comes_first_takes_the_place_of_that_refresh),
		cmocka_unit_test(the_failure_of_a_mint_of_the_old_source_says_nothing),
		cmocka_unit_test(it_says_nothing_to_the_next_request_either),
		cmocka_unit_test(the_wait_goes_on_from_its_arrival),
		cmocka_unit_test(the_failure_of_a_mint_of_the_new_source_is_kept),
		cmocka_unit_test(a_token_in_the_cache_stays),
	};

	return cmocka_run_group_tests_name("token cache, source", tests, NULL, NULL);
}
