/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many that wait for one mint, that go before it ends, and what their callbacks may do.
 */
#include "broker/token_cache.h"

#include "broker/base/secret.h"
#include "tests/unit/token_cache_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define CROWD 1000

static void ask_all(struct client *clients, size_t count, struct subject *subject)
{
	for (size_t i = 0; i < count; i++) {
		client_ask(&clients[i], subject);
		assert_true(clients[i].waiting);
	}
}

static void expect_all(const struct client *clients, size_t count, unsigned answers)
{
	for (size_t i = 0; i < count; i++)
		assert_int_equal(clients[i].answers, answers);
}

static void a_thousand_first_requests_make_one_mint(void **state)
{
	struct client clients[CROWD] = {0};
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	f.plan = plan_hang;
	ask_all(clients, CROWD, &f.subjects[0]);
	assert_int_equal(f.start_count, 1);
	fixture_finish(&f, &plan_succeed);
	expect_all(clients, CROWD, 1);
	for (size_t i = 0; i < CROWD; i++) {
		expect_token(&clients[i], 3601);
		assert_string_equal(clients[i].token, "token-1-of-0");
	}
	fixture_advance(&f, 10 * WAIT_MS);
	expect_all(clients, CROWD, 1);
	assert_int_equal(f.start_count, 1);
}

static void a_thousand_share_one_failure_and_one_limit(void **state)
{
	struct client clients[CROWD] = {0};
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	f.plan = plan_hang;
	ask_all(clients, CROWD, &f.subjects[0]);
	fixture_finish(&f, &plan_fail);
	expect_all(clients, CROWD, 1);
	for (size_t i = 0; i < CROWD; i++)
		assert_string_equal(clients[i].ref, f.starts[0].ref);
	fixture_advance(&f, 1000);
	ask_all(clients, CROWD, &f.subjects[0]);
	fixture_advance(&f, WAIT_MS);
	expect_all(clients, CROWD, 2);
	for (size_t i = 0; i < CROWD; i++)
		expect_retry_after(&clients[i], 1);
	assert_int_equal(f.start_count, 2);
}

static void who_has_gone_is_not_called_and_the_rest_is(void **state)
{
	struct client clients[CROWD] = {0};
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	f.plan = plan_hang;
	ask_all(clients, CROWD, &f.subjects[0]);
	for (size_t i = 0; i < CROWD; i += 3)
		client_cancel(&clients[i]);
	assert_int_equal(f.cancelled, 0);
	fixture_finish(&f, &plan_succeed);
	fixture_advance(&f, 10 * WAIT_MS);
	for (size_t i = 0; i < CROWD; i++)
		assert_int_equal(clients[i].answers, i % 3 != 0);
	assert_int_equal(f.start_count, 1);
}

static void a_mint_that_ends_after_the_last_has_gone_fills_the_cache(void **state)
{
	struct client clients[10] = {0};
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	f.plan = plan_hang;
	ask_all(clients, ARRAY_LEN(clients), &f.subjects[0]);
	for (size_t i = 0; i < ARRAY_LEN(clients); i++)
		client_cancel(&clients[i]);
	fixture_advance(&f, 20000);
	assert_int_equal(f.cancelled, 0);
	fixture_finish(&f, &plan_succeed);
	expect_all(clients, ARRAY_LEN(clients), 0);
	client_ask(&clients[0], &f.subjects[0]);
	expect_token(&clients[0], 3601);
	assert_int_equal(f.start_count, 1);
}

static void a_wait_that_never_was_or_has_ended_may_be_cancelled(void **state)
{
	struct client client = {0};
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	client_cancel(&client);
	client_ask(&client, &f.subjects[0]);
	fixture_advance(&f, MINT_MS);
	client_cancel(&client);
	client_cancel(&client);
	client_ask(&client, &f.subjects[0]);
	client_cancel(&client);
	assert_int_equal(client.answers, 2);
}

static void ask_again(struct client *client, const struct token_answer *answer)
{
	(void)answer;
	client->then = client->then_ctx ? ask_again : NULL;
	client_ask(client, client->subject);
}

/* google-auth-library-java#1002: who waited was woken before the token was there. */
static void a_callback_may_ask_again_and_has_the_new_token_at_once(void **state)
{
	struct client clients[10] = {0};
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	f.plan = plan_hang;
	ask_all(clients, ARRAY_LEN(clients), &f.subjects[0]);
	for (size_t i = 0; i < ARRAY_LEN(clients); i += 2)
		clients[i].then = ask_again;
	fixture_finish(&f, &plan_succeed);
	for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
		expect_token(&clients[i], 3601);
		assert_int_equal(clients[i].answers, i % 2 ? 1 : 2);
	}
	assert_int_equal(f.start_count, 1);
}

static void a_callback_that_asks_again_after_a_failure_starts_nothing(void **state)
{
	struct client clients[10] = {0};
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	f.plan = plan_hang;
	ask_all(clients, ARRAY_LEN(clients), &f.subjects[0]);
	for (size_t i = 0; i < ARRAY_LEN(clients); i++)
		clients[i].then = ask_again;
	fixture_finish(&f, &plan_fail);
	expect_all(clients, ARRAY_LEN(clients), 2);
	assert_int_equal(f.start_count, 1);
}

static void a_callback_at_the_limit_may_wait_again(void **state)
{
	struct client client = {.then = ask_again, .then_ctx = &client};
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	f.plan = plan_hang;
	client_ask(&client, &f.subjects[0]);
	fixture_advance(&f, 4 * WAIT_MS);
	assert_int_equal(client.answers, 4);
	assert_true(client.waiting);
	client.then = NULL;
	fixture_finish(&f, &plan_succeed);
	expect_token(&client, 3601);
	assert_int_equal(f.start_count, 1);
}

struct crowd {
	struct client *clients;
	size_t count;
};

static void cancel_others(struct client *client, const struct token_answer *answer)
{
	const struct crowd *const crowd = client->then_ctx;

	(void)answer;
	for (size_t i = 0; i < crowd->count; i++)
		client_cancel(&crowd->clients[i]);
}

static void a_callback_may_cancel_the_waits_of_others_and_its_own(void **state)
{
	const struct mint_plan *const plans[] = {&plan_succeed, &plan_fail, &plan_hang};

	(void)state;
	for (size_t p = 0; p < ARRAY_LEN(plans); p++) {
		struct client clients[10] = {0};
		struct crowd crowd = {clients, ARRAY_LEN(clients)};
		AUTO_FIXTURE struct fixture f;
		unsigned answers = 0;
		fixture_init(&f, JITTER_NONE);
		f.plan = *plans[p];
		for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
			clients[i].then = cancel_others;
			clients[i].then_ctx = &crowd;
		}
		ask_all(clients, ARRAY_LEN(clients), &f.subjects[0]);
		fixture_advance(&f, 2 * WAIT_MS);
		for (size_t i = 0; i < ARRAY_LEN(clients); i++)
			answers += clients[i].answers;
		assert_int_equal(answers, 1);
	}
}

static void give_back(struct client *client, const struct token_answer *answer)
{
	struct subject *const subject = client->subject;
	struct token_entry *const entry = subject->entry;

	subject->entry = NULL;
	token_entry_unref(entry);
	/* The answer is borrowed for the time of the callback. */
	if (answer->status == TOKEN_OK)
		assert_string_equal(secret_bytes(answer->token), client->token);
	else
		assert_string_equal(answer->ref, client->ref);
}

static void a_callback_may_give_back_the_last_reference(void **state)
{
	const struct mint_plan *const plans[] = {&plan_succeed, &plan_fail, &plan_deny};

	(void)state;
	for (size_t p = 0; p < ARRAY_LEN(plans); p++) {
		struct client clients[10] = {0};
		AUTO_FIXTURE struct fixture f;
		fixture_init(&f, JITTER_NONE);
		f.plan = *plans[p];
		clients[0].then = give_back;
		ask_all(clients, ARRAY_LEN(clients), &f.subjects[0]);
		fixture_advance(&f, 2 * WAIT_MS);
		expect_all(clients, ARRAY_LEN(clients), 1);
		assert_int_equal(f.cancelled, 0);
	}
}

static void so_may_one_whose_time_is_over_and_the_mint_is_ended(void **state)
{
	static const int64_t lefts_ms[] = {0, 100000};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lefts_ms); i++) {
		struct client client = {.then = give_back};
		AUTO_FIXTURE struct fixture f;
		fixture_init(&f, JITTER_NONE);
		subject_age_to(&f.subjects[0], lefts_ms[i]);
		f.plan = plan_hang;
		client_ask(&client, &f.subjects[0]);
		fixture_advance(&f, WAIT_MS);
		expect_status(&client, lefts_ms[i] ? TOKEN_OK : TOKEN_UNAVAILABLE);
		assert_int_equal(f.cancelled, 1);
	}
}

static void the_last_reference_ends_a_mint_and_a_retry(void **state)
{
	struct client client = {0};
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	subject_age_to(&f.subjects[0], 500000);
	f.plan = plan_fail;
	client_ask(&client, &f.subjects[0]);
	fixture_advance(&f, MINT_MS);
	token_entry_unref(token_entry_ref(f.subjects[0].entry));
	fixture_advance(&f, 1000);
	assert_int_equal(f.start_count, 3);
	fixture_advance(&f, MINT_MS);
	token_entry_unref(f.subjects[0].entry);
	f.subjects[0].entry = NULL;
	fixture_advance(&f, LIFE_MS);
	assert_int_equal(f.start_count, 3);
	assert_int_equal(timer_queue_next_ms(&f.timers), -1);
	token_entry_unref(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thousand_first_requests_make_one_mint),
		cmocka_unit_test(a_thousand_share_one_failure_and_one_limit),
		cmocka_unit_test(who_has_gone_is_not_called_and_the_rest_is),
		cmocka_unit_test(a_mint_that_ends_after_the_last_has_gone_fills_the_cache),
		cmocka_unit_test(a_wait_that_never_was_or_has_ended_may_be_cancelled),
		cmocka_unit_test(a_callback_may_ask_again_and_has_the_new_token_at_once),
		cmocka_unit_test(a_callback_that_asks_again_after_a_failure_starts_nothing),
		cmocka_unit_test(a_callback_at_the_limit_may_wait_again),
		cmocka_unit_test(a_callback_may_cancel_the_waits_of_others_and_its_own),
		cmocka_unit_test(a_callback_may_give_back_the_last_reference),
		cmocka_unit_test(so_may_one_whose_time_is_over_and_the_mint_is_ended),
		cmocka_unit_test(the_last_reference_ends_a_mint_and_a_retry),
	};

	return cmocka_run_group_tests_name("token cache, waits", tests, NULL, NULL);
}
