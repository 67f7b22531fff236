/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/preflight.h"

#include "broker/base/alloc.h"
#include "broker/base/clock.h"
#include "broker/base/log.h"
#include "broker/broker.h"
#include "broker/config.h"
#include "broker/credential/credential.h"
#include "broker/google/iam.h"
#include "broker/minter.h"
#include "broker/net/http_client.h"
#include "broker/net/loop.h"
#include "broker/profile.h"
#include "broker/token_cache.h"

/*
 * How long a token is waited for: longer than the longest way to one, a program for the subject token (2
 * minutes) and three calls to Google, for the token service, the account in between and the mint.
 */
#define MINT_WAIT_MS (120000 + 3 * HTTP_CLIENT_CALL_TIMEOUT_MS + 5000)

struct preflight_call {
	struct broker *broker;
	struct profile *profile;
	struct credential *source; /* held; NULL where it is not asked */
	char *first; /* who is next to the source needs the grant: a delegate, or the account */
	struct token_entry *tokens;
	struct credential_call *source_call;
	struct iam_grant_call *grant_call;
	struct token_wait wait;
	struct timer now; /* tells what was known at once, but not before the start has returned */
	preflight_done *done;
	void *ctx;
};

static void release(struct preflight_call *call)
{
	token_wait_cancel(&call->wait);
	timer_stop(loop_timers(call->broker->loop), &call->now);
	token_entry_unref(call->tokens);
	profile_unref(call->profile);
	if (call->source)
		credential_release(call->source);
	free(call->first);
	free(call);
}

void preflight_cancel(struct preflight_call *call)
{
	if (!call)
		return;
	credential_call_cancel(call->source_call);
	iam_grant_call_cancel(call->grant_call);
	release(call);
}

static void finish(struct preflight_call *call, const struct preflight_verdict *verdict)
{
	call->done(call->ctx, verdict);
	release(call);
}

static void pass(struct preflight_call *call)
{
	static const struct preflight_verdict good = {.ok = true};

	finish(call, &good);
}

/* Who asked for what. */
static void name_names(const struct preflight_call *call, struct failure *failure)
{
	struct credential_info info;

	credential_info(call->source, &info);
	failure_fill(failure,
		     &(struct failure_scene){
			     .caller = info.principal,
			     .account = call->first,
			     .repair = credential_repair(call->source),
			     .wall_s = clock_wall_ms(loop_timers(call->broker->loop)->clock) / 1000,
		     });
}

/* Only a definite no refuses: the first mint will tell. */
static void pass_unasked(struct preflight_call *call, const struct failure *failure)
{
	struct failure told = *failure;

	name_names(call, &told);
	log_warning("preflight: profile=%s account=%s could not be asked: http_status=%ld "
		    "reason=%s hint=\"%s\"",
		    call->profile->settings->name, call->first, failure->http_status,
		    failure->reason, told.detail);
	pass(call);
}

static void refuse(struct preflight_call *call, const struct failure *failure)
{
	const struct preflight_verdict verdict = {
		.class = failure->class,
		.text = failure_public_text(failure->public),
	};
	struct failure told = *failure;

	name_names(call, &told);
	log_warning("preflight: profile=%s account=%s refused: http_status=%ld reason=%s "
		    "hint=\"%s\"",
		    call->profile->settings->name, call->first, failure->http_status,
		    failure->reason, told.detail);
	finish(call, &verdict);
}

static void on_grant(void *ctx, enum iam_grant grant, const struct failure *failure)
{
	struct preflight_call *const call = ctx;
	struct failure missing;

	call->grant_call = NULL;
	switch (grant) {
	case IAM_GRANT_YES:
		pass(call);
		return;
	case IAM_GRANT_UNKNOWN:
		pass_unasked(call, failure);
		return;
	case IAM_GRANT_NO:
		break;
	}
	failure_set_no_grant(&missing);
	refuse(call, failure ? failure : &missing);
}

static void on_source(void *ctx, struct secret *token, const struct failure *failure)
{
	struct preflight_call *const call = ctx;
	struct broker *const broker = call->broker;

	call->source_call = NULL;
	if (failure && failure->class == FAILURE_PERMANENT) {
		refuse(call, failure);
		return;
	}
	if (failure) {
		pass_unasked(call, failure);
		return;
	}
	const struct iam_grant_request request = {
		.endpoint = broker->service.config->endpoints.iam,
		.account = call->first,
		.quota_project = broker->service.config->source.quota_project,
		.source_token = token,
	};
	call->grant_call = iam_test_grant(broker->client, &request, on_grant, call);
	if (!call->grant_call)
		abort(); /* the configuration refuses what is no e-mail address */
}

static void on_token(void *ctx, const struct token_answer *answer)
{
	struct preflight_call *const call = ctx;
	const struct preflight_verdict verdict = {
		.ok = answer->status == TOKEN_OK,
		.class = answer->status == TOKEN_DENIED ? FAILURE_PERMANENT : FAILURE_TRANSIENT,
		.text = failure_public_text(answer->why),
		.ref = answer->ref,
	};

	finish(call, &verdict);
}

static void on_now(struct timer *timer)
{
	struct preflight_call *const call = CONTAINER_OF(timer, struct preflight_call, now);
	const struct profile_config *const settings = call->profile->settings;
	struct token_answer answer;

	/* Begun offline: that is what was known, whatever the source has become since. */
	if (!call->wait.done)
		pass(call);
	else if (token_request(call->tokens, settings->refresh_margin_s, &call->wait, &answer))
		on_token(call, &answer);
}

static void ask_source(struct preflight_call *call)
{
	const struct profile_config *const settings = call->profile->settings;
	const struct credential_route route = credential_route(call->broker->credential,
							       settings->service_account,
							       &settings->delegates);
	const char *const first = route.delegates->count ? route.delegates->items[0] :
							   settings->service_account;

	call->first = xstrdup(first);
	call->source = route.credential;
	credential_hold(call->source);
	credential_set_skew(call->source, minter_skew_s(call->broker->minter));
	call->source_call = credential_get_iam_token(route.credential, on_source, call);
}

struct preflight_call *preflight_start(struct broker *broker,
				       const struct preflight_request *request,
				       preflight_done *done, void *ctx)
{
	struct preflight_call *const call = xcalloc(1, sizeof(*call));
	struct timer_queue *const timers = loop_timers(broker->loop);

	call->broker = broker;
	call->profile = profile_ref(request->profile);
	call->tokens = token_entry_ref(request->tokens);
	call->done = done;
	call->ctx = ctx;
	if (request->what == PREFLIGHT_MINT)
		call->wait = (struct token_wait){.arrival_ms = clock_boot_ms(timers->clock),
						 .limit_ms = MINT_WAIT_MS,
						 .done = on_token,
						 .ctx = call};
	if (request->what == PREFLIGHT_MINT || credential_is_offline(broker->credential))
		timer_set_after(timers, &call->now, 0, on_now);
	else
		ask_source(call);
	return call;
}
