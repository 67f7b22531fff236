/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/token_cache_client.h"

#include "broker/base/secret.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/*
 * A storm of clients must not become a storm of mints, however short the tokens live: what a mint brought
 * that followed another within a second is what there is for a second.
 */
static bool is_kept(const struct subject *subject)
{
	return subject->hasty && subject->has_token &&
	       fixture_now_ms(subject->fixture) - subject->arrived_ms < 1000;
}

static void check_token(const struct client *client)
{
	const struct subject *const subject = client->subject;
	const struct fixture *const fixture = subject->fixture;
	const int64_t left_ms = subject_left_ms(subject);

	fixture_must(fixture, client->expires_in_s > 0, "expires_in <= 0");
	fixture_must(fixture, !strcmp(client->token, subject->token),
		     "not the newest token of its key");
	if (fixture->clock_jumps)
		return;
	fixture_must(fixture, left_ms > 0, "an expired token");
	fixture_must(fixture, client->expires_in_s == left_ms / 1000,
		     "expires_in not of this moment");
	fixture_must(fixture,
		     left_ms >= FLOOR_MS || left_ms > subject->margin_s * 1000 ||
			     is_kept(subject) || fixture_now_ms(fixture) == subject->arrived_ms,
		     "an old token with less than 30 s");
}

static void check_refusal(const struct client *client)
{
	const struct subject *const subject = client->subject;
	const struct fixture *const fixture = subject->fixture;
	const int64_t hold_ms = subject->hold_until_ms - fixture_now_ms(fixture);

	fixture_must(fixture, subject_left_ms(subject) < FLOOR_MS,
		     "refused though a token has 30 s");
	if (client->status == TOKEN_DENIED) {
		fixture_must(fixture, !subject->in_flight && hold_ms > 0,
			     "denied while a mint may go");
		fixture_must(fixture, subject->failure == FAILURE_PERMANENT,
			     "denied for the time being");
		fixture_must(fixture, client->why == FAILURE_NOT_ALLOWED,
			     "not the failure's own reason");
		fixture_must(fixture, !strcmp(client->ref, subject->failure_ref),
			     "not the failure's ref");
		return;
	}
	fixture_must(fixture, client->why == FAILURE_TEMPORARY, "not the reason of a 503");
	if (subject->in_flight || hold_ms <= 0) {
		fixture_must(fixture, client->retry_after_s == 1, "1 s while a mint is awaited");
		fixture_must(fixture, !strcmp(client->ref, subject->ref), "not the mint's ref");
		fixture_must(fixture, subject->in_flight || is_kept(subject),
			     "refused without a cause");
		return;
	}
	fixture_must(fixture, subject->failure == FAILURE_TRANSIENT,
		     "for now, though it failed for good");
	fixture_must(fixture, client->retry_after_s == (hold_ms + 999) / 1000,
		     "not what is left, in s");
	fixture_must(fixture, !strcmp(client->ref, subject->failure_ref), "not the failure's ref");
}

static void check_wait(const struct client *client)
{
	const struct subject *const subject = client->subject;
	const int64_t waited_ms = client->answered_ms - client->arrived_ms;

	fixture_must(subject->fixture, client->answered_ms <= client->limit_ms,
		     "answered too late");
	/* With a mint under way it is the time that ended the wait. */
	if (!subject->in_flight || subject->fixture->clock_jumps)
		return;
	fixture_must(subject->fixture,
		     waited_ms >= (client->status == TOKEN_OK ? WAIT_WITH_OLD_MS : WAIT_MS),
		     "answered before its time");
}

static void take_answer(struct client *client, const struct token_answer *answer)
{
	client->answers++;
	client->waiting = false;
	client->answered_ms = fixture_now_ms(client->subject->fixture);
	client->status = answer->status;
	client->expires_in_s = answer->expires_in_s;
	client->why = answer->why;
	client->retry_after_s = answer->retry_after_s;
	client->token[0] = '\0';
	client->ref[0] = '\0';
	if (answer->status == TOKEN_OK) {
		(void)snprintf(client->token, sizeof(client->token), "%s",
			       secret_bytes(answer->token));
		check_token(client);
		return;
	}
	assert_null(answer->token);
	(void)snprintf(client->ref, sizeof(client->ref), "%s", answer->ref);
	check_refusal(client);
}

static void on_answer(void *ctx, const struct token_answer *answer)
{
	struct client *const client = ctx;

	fixture_must(client->subject->fixture, client->waiting, "an answer to nobody");
	take_answer(client, answer);
	check_wait(client);
	if (client->then)
		client->then(client, answer);
}

/* By the contract: when a request starts a mint, and when it is answered at once. */
static void check_request(const struct client *client, int64_t left_ms, bool may_start,
			  size_t starts)
{
	const struct subject *const subject = client->subject;
	const struct fixture *const fixture = subject->fixture;
	const int64_t margin_ms = subject->margin_s * 1000;
	const bool due = left_ms <= 2 * margin_ms && may_start;

	fixture_must(fixture, subject->starts == starts + due,
		     due ? "no mint, though due" : "a mint, though not due");
	if (left_ms > margin_ms)
		fixture_must(fixture, !client->waiting && client->status == TOKEN_OK,
			     "not at once");
	else if (subject->in_flight)
		fixture_must(fixture,
			     client->waiting == (fixture_now_ms(fixture) < client->limit_ms),
			     "does not wait as long as it has");
	else
		fixture_must(fixture, !client->waiting, "waits for nothing");
}

void client_ask_since(struct client *client, struct subject *subject, int64_t arrived_ms)
{
	const int64_t left_ms = subject_left_ms(subject);
	const int64_t now_ms = fixture_now_ms(subject->fixture);
	const size_t starts = subject->starts;
	struct token_answer answer;

	assert_false(client->waiting);
	if (left_ms <= 0)
		subject->has_token = false;
	const bool may_start = !subject->in_flight && now_ms >= subject->hold_until_ms &&
			       !is_kept(subject);
	client->subject = subject;
	client->arrived_ms = arrived_ms;
	/* With an old token that has 30 s still when 300 ms have passed. */
	const bool with_old = left_ms >= FLOOR_MS &&
			      (arrived_ms + WAIT_WITH_OLD_MS <= now_ms ||
			       left_ms - (arrived_ms + WAIT_WITH_OLD_MS - now_ms) >= FLOOR_MS);
	client->limit_ms = arrived_ms + (with_old ? WAIT_WITH_OLD_MS : WAIT_MS);
	client->wait.arrival_ms = arrived_ms;
	client->wait.done = on_answer;
	client->wait.ctx = client;
	client->waiting = !token_request(subject->entry, subject->margin_s, &client->wait, &answer);
	if (!client->waiting)
		take_answer(client, &answer);
	check_request(client, left_ms, may_start, starts);
}

void client_ask(struct client *client, struct subject *subject)
{
	client_ask_since(client, subject, fixture_now_ms(subject->fixture));
}

void client_cancel(struct client *client)
{
	token_wait_cancel(&client->wait);
	client->waiting = false;
}

void expect_token(const struct client *client, int64_t expires_in_s)
{
	expect_status(client, TOKEN_OK);
	assert_int_equal(client->expires_in_s, expires_in_s);
}

void expect_status(const struct client *client, enum token_status status)
{
	assert_false(client->waiting);
	assert_true(client->answers > 0);
	assert_int_equal(client->status, status);
}

void expect_retry_after(const struct client *client, int64_t seconds)
{
	expect_status(client, TOKEN_UNAVAILABLE);
	assert_int_equal(client->retry_after_s, seconds);
}

void subject_age_to(struct subject *subject, int64_t left_ms)
{
	struct fixture *const fixture = subject->fixture;
	const struct mint_plan plan = fixture->plan;
	struct client client = {0};

	assert_false(subject->has_token);
	fixture->plan = plan_hang;
	client_ask(&client, subject);
	fixture_finish(fixture, &plan_succeed);
	expect_token(&client, LIFE_MS / 1000);
	fixture->plan = plan;
	fixture_advance(fixture, LIFE_MS - left_ms);
}
