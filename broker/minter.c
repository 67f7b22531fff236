/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/minter.h"

#include "broker/audit.h"
#include "broker/base/alloc.h"
#include "broker/base/clock.h"
#include "broker/base/log.h"
#include "broker/base/random.h"
#include "broker/base/secret.h"
#include "broker/base/strv.h"
#include "broker/credential/credential.h"
#include "broker/google/iam_credentials.h"

#include <inttypes.h>
#include <string.h>

/* More than this and the operator is told. */
#define SKEW_WARN_S 60

const int64_t minter_bucket_ms[MINTER_BUCKETS] = {25, 50, 100, 250, 500, 1000, 2500, 10000};

struct minter {
	struct minter_options options;
	struct minter_stats stats;
	int64_t skew_s;
	char refused
		[SECRET_FINGERPRINT_SIZE]; /* the source's token that was, since a mint went well */
	unsigned busy;
};

struct mint {
	struct minter *minter;
	struct token_key key; /* borrowed from the entry, which outlives its mint */
	char ref[TOKEN_REF_SIZE];
	char source[SECRET_FINGERPRINT_SIZE]; /* the source's token that was used */
	int64_t began_ms;
	int64_t skew_s; /* that was known then */
	struct credential_route route;
	struct credential_call *source_call;
	struct iam_call *iam_call;
	mint_done *done;
	void *done_ctx;
};

struct minter *minter_new(const struct minter_options *options)
{
	struct minter *const minter = xcalloc(1, sizeof(*minter));

	minter->options = *options;
	return minter;
}

void minter_free(struct minter *minter)
{
	free(minter);
}

void minter_set_source(struct minter *minter, struct credential *credential, const char *endpoint,
		       const char *quota_project)
{
	minter->options.credential = credential;
	minter->options.endpoint = endpoint;
	minter->options.quota_project = quota_project;
	minter->refused[0] = '\0';
}

void minter_set_audit(struct minter *minter, struct audit *audit)
{
	minter->options.audit = audit;
}

unsigned minter_busy(const struct minter *minter)
{
	return minter->busy;
}

int64_t minter_skew_s(const struct minter *minter)
{
	return minter->skew_s;
}

const struct minter_stats *minter_stats(const struct minter *minter)
{
	return &minter->stats;
}

static void note_time(struct minter *minter, int64_t took_ms)
{
	size_t i = 0;

	while (i < MINTER_BUCKETS && took_ms > minter_bucket_ms[i])
		i++;
	minter->stats.buckets[i]++;
	minter->stats.count++;
	minter->stats.total_ms += took_ms;
}

/* Who called for what, as far as the mint knows: an account in between has been named already. */
static void name_names(const struct mint *mint, struct failure *failure)
{
	struct credential *const credential = mint->route.credential;
	struct credential_info info;

	credential_info(credential, &info);
	failure_fill(failure,
		     &(struct failure_scene){
			     .caller = info.principal,
			     .account = mint->key.service_account,
			     .repair = credential_repair(credential),
			     .wall_s = clock_wall_ms(mint->minter->options.timers->clock) / 1000,
		     });
}

static void report_failure(const struct mint *mint, const struct failure *failure, int64_t took_ms)
{
	struct audit *const audit = mint->minter->options.audit;

	log_warning("mint failed: ref=%s profile=%s account=%s step=%s http_status=%ld reason=%s "
		    "permission=%s class=%s took_ms=%" PRId64 " hint=\"%s\"",
		    mint->ref, mint->key.profile, mint->key.service_account,
		    failure_step_name(failure->step), failure->http_status, failure->reason,
		    failure->permission[0] ? failure->permission : "-",
		    failure_class_name(failure->class), took_ms, failure->detail);
	json_t *const event = audit_event(audit, "token.mint");
	audit_add(event, "session", mint->key.session);
	audit_add(event, "profile", mint->key.profile);
	audit_add(event, "ref", mint->ref);
	audit_add(event, "result", "failed");
	audit_add(event, "account", mint->key.service_account);
	audit_add(event, "class", failure_class_name(failure->class));
	audit_add_int(event, "http_status", failure->http_status);
	audit_add(event, "reason", failure->reason);
	audit_add(event, "permission", failure->permission[0] ? failure->permission : NULL);
	(void)audit_write(audit, event);
}

static void report_token(const struct mint *mint, const struct mint_result *result, int64_t took_ms)
{
	const bool offline = credential_is_offline(mint->route.credential);
	struct audit *const audit = mint->minter->options.audit;

	log_info("minted: ref=%s profile=%s account=%s token=%s expires_in=%" PRId64
		 " took_ms=%" PRId64 "%s",
		 mint->ref, mint->key.profile, mint->key.service_account,
		 secret_fingerprint(result->token), result->life_ms / 1000, took_ms,
		 offline ? " source=offline (no API accepts this token)" : "");
	json_t *const event = audit_event(audit, "token.mint");
	audit_add(event, "session", mint->key.session);
	audit_add(event, "profile", mint->key.profile);
	audit_add(event, "ref", mint->ref);
	audit_add(event, "result", offline ? "offline" : "ok");
	audit_add(event, "account", mint->key.service_account);
	audit_add(event, "token", secret_fingerprint(result->token));
	audit_add_int(event, "expires_in", result->life_ms / 1000);
	(void)audit_write(audit, event);
}

static int64_t note_end(struct mint *mint)
{
	struct minter *const minter = mint->minter;
	const int64_t took_ms = clock_boot_ms(minter->options.timers->clock) - mint->began_ms;

	minter->busy--;
	note_time(minter, took_ms);
	return took_ms;
}

/* Exactly one of result and failure is not NULL. */
static void end(struct mint *mint, const struct mint_result *result, const struct failure *failure)
{
	struct minter *const minter = mint->minter;
	mint_done *const done = mint->done;
	void *const done_ctx = mint->done_ctx;

	credential_release(mint->route.credential);
	if (minter->options.ended)
		minter->options.ended(minter->options.ended_ctx, mint->key.profile, result != NULL);
	free(mint);
	done(done_ctx, result, failure);
}

static void succeed(struct mint *mint, const struct mint_result *result)
{
	report_token(mint, result, note_end(mint));
	end(mint, result, NULL);
}

static void fail(struct mint *mint, const struct failure *failure)
{
	const int64_t took_ms = note_end(mint);
	struct failure told = *failure;

	name_names(mint, &told);
	report_failure(mint, &told, took_ms);
	end(mint, NULL, failure);
}

static void note_skew(struct mint *mint, int64_t skew_s)
{
	struct minter *const minter = mint->minter;
	const bool was_off = minter->skew_s > SKEW_WARN_S || minter->skew_s < -SKEW_WARN_S;
	const bool is_off = skew_s > SKEW_WARN_S || skew_s < -SKEW_WARN_S;

	minter->skew_s = skew_s;
	credential_set_skew(mint->route.credential, skew_s);
	if (is_off && !was_off)
		log_warning("clock: this host is %" PRId64
			    " s %s Google's time; assertions are corrected, "
			    "but set the clock (chronyc makestep)",
			    skew_s < 0 ? -skew_s : skew_s, skew_s < 0 ? "behind" : "ahead of");
}

/*
 * What was signed by a clock that was off, without our knowing, is refused by more than one name: the next
 * assertion is corrected.
 */
static void excuse_skew(const struct mint *mint, struct failure *failure)
{
	/* Since this mint began: others beside it may have found it first. */
	const int64_t found_s = mint->minter->skew_s - mint->skew_s;

	if (failure->http_status != 401 || (found_s <= SKEW_WARN_S && found_s >= -SKEW_WARN_S))
		return;
	failure->class = FAILURE_TRANSIENT;
	failure->public = FAILURE_TEMPORARY;
	failure->source_token_refused = true;
}

/* A clock that is off is a reason to be refused: what is signed next is corrected. */
static void learn_skew(struct mint *mint, struct failure *failure)
{
	const int64_t wall_ms = clock_wall_ms(mint->minter->options.timers->clock);

	if (!failure->date_s)
		return;
	note_skew(mint, wall_ms / 1000 - failure->date_s);
	excuse_skew(mint, failure);
}

/*
 * A refused source token is dropped, and the next try gets a new one. Where that is refused too it was
 * no accident of a cached token: the login is not accepted.
 */
static void judge_refusal(struct mint *mint, struct failure *failure)
{
	struct minter *const minter = mint->minter;

	credential_drop_token(mint->route.credential);
	if (minter->refused[0] && strcmp(minter->refused, mint->source) != 0) {
		failure->class = FAILURE_PERMANENT;
		failure->public = FAILURE_LOGIN_EXPIRED;
	}
	memcpy(minter->refused, mint->source, sizeof(minter->refused));
}

static void on_token(void *ctx, const struct iam_token *token, const struct failure *failure)
{
	struct mint *const mint = ctx;
	struct failure own;

	mint->iam_call = NULL;
	if (token) {
		const struct mint_result result = {.token = token->token,
						   .life_ms = token->life_ms};
		mint->minter->refused[0] = '\0';
		note_skew(mint, token->skew_s);
		succeed(mint, &result);
		return;
	}
	own = *failure;
	learn_skew(mint, &own);
	if (own.source_token_refused)
		judge_refusal(mint, &own);
	else
		mint->minter->refused[0] = '\0';
	fail(mint, &own);
}

/* Who gives subject tokens, or the machine's own server, may have a clock that is not Google's. */
static void fail_at_source(struct mint *mint, const struct failure *failure)
{
	struct failure own = *failure;

	if (own.step == FAILURE_STEP_IMPERSONATE)
		learn_skew(mint, &own);
	fail(mint, &own);
}

static void on_source(void *ctx, struct secret *token, const struct failure *failure)
{
	struct mint *const mint = ctx;
	struct minter *const minter = mint->minter;

	mint->source_call = NULL;
	if (failure) {
		fail_at_source(mint, failure);
		return;
	}
	if (credential_is_offline(mint->route.credential)) {
		const struct mint_result result = {.token = token,
						   .life_ms = mint->key.lifetime_s * 1000};
		succeed(mint, &result);
		return;
	}
	memcpy(mint->source, secret_fingerprint(token), sizeof(mint->source));
	const struct iam_token_request request = {
		.endpoint = minter->options.endpoint,
		.service_account = mint->key.service_account,
		.scopes = mint->key.scopes,
		.delegates = mint->route.delegates,
		.lifetime_s = mint->key.lifetime_s,
		.quota_project = minter->options.quota_project,
		.source_token = token,
	};
	mint->iam_call = iam_generate_access_token(minter->options.client,
						   minter->options.timers->clock, &request,
						   on_token, mint);
	/* The configuration refuses what could not be put into a request. */
	if (!mint->iam_call)
		abort();
}

static struct mint *start(void *ctx, const struct token_key *key, const char *ref, mint_done *done,
			  void *done_ctx)
{
	struct minter *const minter = ctx;
	struct mint *const mint = xcalloc(1, sizeof(*mint));

	minter->busy++;
	mint->minter = minter;
	mint->key = *key;
	memcpy(mint->ref, ref, sizeof(mint->ref));
	mint->began_ms = clock_boot_ms(minter->options.timers->clock);
	mint->route =
		credential_route(minter->options.credential, key->service_account, key->delegates);
	credential_hold(mint->route.credential);
	/* It may be a newer one than that with which the clock was seen to be off. */
	mint->skew_s = minter->skew_s;
	credential_set_skew(mint->route.credential, mint->skew_s);
	mint->done = done;
	mint->done_ctx = done_ctx;
	mint->source_call = credential_get_token(mint->route.credential, on_source, mint);
	return mint;
}

static void cancel(void *ctx, struct mint *mint)
{
	struct minter *const minter = ctx;

	minter->busy--;
	credential_call_cancel(mint->source_call);
	iam_call_cancel(mint->iam_call);
	credential_release(mint->route.credential);
	free(mint);
}

const struct mint_ops minter_ops = {
	.start = start,
	.cancel = cancel,
	.random_below = random_below,
};
