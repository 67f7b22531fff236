/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/credential/credential.h"

#include "broker/base/alloc.h"
#include "broker/base/clock.h"
#include "broker/base/err.h"
#include "broker/base/secret.h"
#include "broker/base/timer.h"
#include "broker/credential/credential_impl.h"

#include <assert.h>
#include <string.h>

/*
 * A cached token is not used in its last 300 s, or its last third where its life is shorter: it must
 * outlive the mint that it is for.
 */
#define MARGIN_MS ((int64_t)300 * 1000)

struct credential_call {
	struct list link;   /* among the credential's waiters */
	struct timer timer; /* or on its way to its result */
	struct credential *credential;
	const char *service; /* that the token is for; static */
	credential_done *done;
	void *ctx;
};

struct kind {
	const char *type;
	int (*open)(const struct credential_options *options, struct credential **out,
		    struct err *err);
};

static const struct kind kinds[] = {
	{"adc", adc_open},	   {"file", credential_file_open_option},
	{"gcloud", gcloud_open},   {"metadata", metadata_open},
	{"offline", offline_open},
};

int credential_open(const struct credential_options *options, struct credential **out,
		    struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (!strcmp(kinds[i].type, options->type))
			return kinds[i].open(options, out, err);
	return err_set(
		err, ERR_UNSUPPORTED,
		"source type %.40s is not supported: use adc, file, gcloud, metadata or offline",
		options->type);
}

void credential_init(struct credential *credential, const struct credential_ops *ops,
		     const struct credential_options *options)
{
	*credential = (struct credential){
		.ops = ops,
		.client = options->client,
		.timers = options->timers,
	};
	credential->settings = xasprintf("%s %s %s %s", options->universe_domain,
					 options->oauth2_endpoint, options->sts_endpoint,
					 options->iamcredentials_endpoint);
	list_init(&credential->waiters);
}

void credential_free(struct credential *credential)
{
	if (!credential)
		return;
	free(credential->principal);
	free(credential->path);
	free(credential->settings);
	free(credential->repair);
	secret_unref(credential->content);
	secret_unref(credential->token);
	credential->ops->free(credential);
}

static bool token_is_held(const struct credential *credential, int64_t margin_ms)
{
	const struct clock *const clock = credential->timers->clock;

	/* The earlier of two deadlines: a wall clock set forward costs a refresh, one set back nothing. */
	return credential->token &&
	       clock_boot_ms(clock) < credential->expires_boot_ms - margin_ms &&
	       clock_wall_ms(clock) < credential->expires_wall_ms - margin_ms;
}

static bool token_is_fresh(const struct credential *credential)
{
	return token_is_held(credential, credential->margin_ms);
}

void credential_info(const struct credential *credential, struct credential_info *info)
{
	*info = (struct credential_info){
		.type = credential->ops->type,
		.principal = credential->principal ? credential->principal : "",
		.path = credential->path ? credential->path : "",
		.token_expires_wall_ms =
			token_is_held(credential, 0) ? credential->expires_wall_ms : 0,
	};
}

bool credential_equal(const struct credential *a, const struct credential *b)
{
	if (a->ops != b->ops || !a->content != !b->content || strcmp(a->settings, b->settings) != 0)
		return false;
	return !a->content || secret_equal(a->content, b->content);
}

/* A route leads past the outer one, which owns what the route lends: it is in use as well. */
static void count_call(struct credential *credential, bool begins)
{
	for (; credential; credential = credential->outer)
		credential->calls += begins ? 1 : (size_t)-1;
}

bool credential_is_busy(const struct credential *credential)
{
	return credential->calls > 0;
}

void credential_hold(struct credential *credential)
{
	count_call(credential, true);
}

void credential_release(struct credential *credential)
{
	count_call(credential, false);
}

const char *credential_repair(const struct credential *credential)
{
	/* What is within a file is renewed with the file. */
	while (credential->outer)
		credential = credential->outer;
	return credential->repair;
}

bool credential_is_offline(const struct credential *credential)
{
	return credential->ops->offline;
}

/* Ends a call: its handle is dead in the callback. */
static void finish(struct credential_call *call, struct secret *token,
		   const struct failure *failure)
{
	credential_done *const done = call->done;
	void *const ctx = call->ctx;

	count_call(call->credential, false);
	free(call);
	done(ctx, token, failure);
}

static void wait_for_refresh(struct credential_call *call)
{
	struct credential *const credential = call->credential;
	const struct clock *const clock = credential->timers->clock;

	list_append(&credential->waiters, &call->link);
	if (credential->refreshing)
		return;
	credential->refreshing = true;
	/* The life of an OAuth2 token counts from here: when it was made is not told. */
	credential->sent_boot_ms = clock_boot_ms(clock);
	credential->sent_wall_ms = clock_wall_ms(clock);
	credential->ops->refresh(credential);
}

static void finish_with_made(struct credential_call *call)
{
	AUTO_SECRET struct secret *token = NULL;
	struct failure failure;

	if (call->credential->ops->make(call->credential, call->service, &token, &failure))
		finish(call, NULL, &failure);
	else
		finish(call, token, NULL);
}

static void result_is_due(struct timer *timer)
{
	struct credential_call *const call = CONTAINER_OF(timer, struct credential_call, timer);
	struct credential *const credential = call->credential;

	if (credential->ops->make) {
		finish_with_made(call);
		return;
	}
	/* It may have been dropped, or have run out, since the call was made. */
	if (!token_is_fresh(credential)) {
		wait_for_refresh(call);
		return;
	}
	AUTO_SECRET struct secret *token = secret_ref(credential->token);
	finish(call, token, NULL);
}

static struct credential_call *get_token(struct credential *credential, const char *service,
					 credential_done *done, void *ctx)
{
	struct credential_call *const call = xcalloc(1, sizeof(*call));

	count_call(credential, true);
	call->credential = credential;
	call->service = service;
	call->done = done;
	call->ctx = ctx;
	if (credential->ops->make || token_is_fresh(credential))
		timer_set_after(credential->timers, &call->timer, 0, result_is_due);
	else
		wait_for_refresh(call);
	return call;
}

struct credential_call *credential_get_token(struct credential *credential, credential_done *done,
					     void *ctx)
{
	return get_token(credential, "iamcredentials", done, ctx);
}

struct credential_call *credential_get_iam_token(struct credential *credential,
						 credential_done *done, void *ctx)
{
	return get_token(credential, "iam", done, ctx);
}

void credential_call_cancel(struct credential_call *call)
{
	if (!call)
		return;
	timer_stop(call->credential->timers, &call->timer);
	/* The refresh goes on: others may wait for it, and the next call will be glad of it. */
	list_remove(&call->link);
	count_call(call->credential, false);
	free(call);
}

static void keep_token(struct credential *credential, struct secret *token, int64_t life_s)
{
	const int64_t life_ms = life_s * 1000;

	credential_drop_token(credential);
	if (life_ms <= 0)
		return;
	credential->token = secret_ref(token);
	credential->expires_boot_ms = credential->sent_boot_ms + life_ms;
	credential->expires_wall_ms = credential->sent_wall_ms + life_ms;
	credential->margin_ms = life_ms / 3 < MARGIN_MS ? life_ms / 3 : MARGIN_MS;
}

void credential_publish(struct credential *credential, const struct credential_refreshed *refreshed)
{
	struct list ready;
	struct list *link;

	credential->refreshing = false;
	if (refreshed->token)
		keep_token(credential, refreshed->token, refreshed->life_s);
	/*
	 * A callback may ask again, cancel others, or free the credential once nobody waits: those who
	 * wait now are on a list of their own, and the credential is not looked at again.
	 */
	list_move_all(&ready, &credential->waiters);
	while ((link = list_first(&ready))) {
		assert(list_linked(link));
		list_remove(link);
		finish(CONTAINER_OF(link, struct credential_call, link), refreshed->token,
		       refreshed->failure);
	}
}

void credential_drop_token(struct credential *credential)
{
	secret_unref(credential->token);
	credential->token = NULL;
}

struct credential_route credential_route(struct credential *credential, const char *account,
					 const struct strv *delegates)
{
	const struct credential_route straight = {credential, delegates};
	struct credential_route route;

	/* Delegates begin at the source: with them the chain stays whole. */
	if (delegates->count || !credential->ops->behind)
		return straight;
	return credential->ops->behind(credential, account, &route) ? route : straight;
}

void credential_set_skew(struct credential *credential, int64_t skew_s)
{
	credential->skew_s = skew_s;
}
