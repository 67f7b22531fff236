/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of a request: judged while its head is there, then it may have to wait for the pin, the
 * rate and a token, in that order.
 */
#include "broker/endpoint_impl.h"

#include "broker/base/alloc.h"
#include "broker/base/clock.h"
#include "broker/base/log.h"
#include "broker/base/random.h"
#include "broker/net/bridges.h"
#include "broker/net/http_server.h"
#include "broker/profile.h"

static void pending_init(struct pending *pending, struct endpoint *endpoint,
			 struct http_request *request, const struct recipe_verdict *verdict)
{
	pending->endpoint = endpoint;
	pending->profile = profile_ref(endpoint->profile);
	pending->request = request;
	pending->verdict = *verdict;
	http_request_set_user(request, pending);
}

static void pending_free(struct pending *pending)
{
	token_wait_cancel(&pending->wait);
	timer_stop(pending->endpoint->context.timers, &pending->timer);
	list_remove(&pending->link);
	profile_unref(pending->profile);
	free(pending);
}

static int64_t now_ms(const struct endpoint *endpoint)
{
	return clock_boot_ms(endpoint->context.timers->clock);
}

static void answer(struct endpoint *endpoint, struct profile *profile, struct http_request *request,
		   const struct recipe_verdict *verdict)
{
	trail_count(endpoint, profile, verdict->route, verdict->status);
	http_request_respond(request, verdict->response);
}

static void note_verdict(struct endpoint *endpoint, struct profile *profile,
			 const struct recipe_verdict *verdict, const struct address *peer)
{
	const struct refusal refusal = {verdict->refusal, verdict->route, verdict->status, NULL};

	if (verdict->refusal)
		trail_refusal(endpoint, profile, &refusal, peer);
}

/* Why a request is refused that no mint stands behind. */
struct cause {
	enum log_level level;
	const char *text;
};

static const struct cause no_trail = {LOG_LEVEL_ERROR,
				      "audit_required is set and the trail cannot be written"};
static const struct cause no_pin = {LOG_LEVEL_INFO, "the session has not been pinned in time"};
static const struct cause closing = {LOG_LEVEL_INFO, "the endpoint is closing"};

static void refuse(struct endpoint *endpoint, struct profile *profile, struct http_request *request,
		   const char *route, const struct cause *cause)
{
	char ref[TOKEN_REF_SIZE];
	const struct recipe_token none = {
		.for_now = true,
		.description = failure_public_text(FAILURE_TEMPORARY),
		.ref = ref,
		.retry_after_s = 1,
	};
	const struct refusal refusal = {"token_unavailable", route, 503, ref};

	random_hex(ref, sizeof(ref));
	log_write(cause->level, "refused: ref=%s profile=%s session=%s route=%s %s", ref,
		  profile->settings->name, endpoint->session ? endpoint->session : "-", route,
		  cause->text);
	trail_refusal(endpoint, profile, &refusal, http_request_peer(request));
	trail_count(endpoint, profile, route,
		    profile->backend->give(profile->recipe, request, &none));
}

static void give(struct endpoint *endpoint, struct profile *profile, struct http_request *request,
		 const struct token_answer *given)
{
	const struct recipe_token token = {
		.token = given->token,
		.expires_in_s = given->expires_in_s,
		.for_now = given->status == TOKEN_UNAVAILABLE,
		.description = failure_public_text(given->why),
		.ref = given->ref,
		.retry_after_s = given->retry_after_s,
	};
	const struct address *const peer = http_request_peer(request);

	if (token.token && trail_serve(endpoint, profile, peer, given)) {
		refuse(endpoint, profile, request, "token", &no_trail);
		return;
	}
	if (token.token) {
		profile->counters->tokens++;
		endpoint->counts.tokens++;
	} else {
		const struct refusal refusal = {token.for_now ? "token_unavailable" :
								"token_denied",
						"token", token.for_now ? 503 : 403, token.ref};
		trail_refusal(endpoint, profile, &refusal, peer);
	}
	trail_count(endpoint, profile, "token",
		    profile->backend->give(profile->recipe, request, &token));
}

static void on_token(void *ctx, const struct token_answer *given)
{
	struct pending *const pending = ctx;

	give(pending->endpoint, pending->profile, pending->request, given);
	pending_free(pending);
}

/* True with the answer; false where pending->wait waits for it. */
static bool ask(const struct endpoint *endpoint, const struct profile *profile,
		struct http_request *request, struct pending *pending, struct token_answer *given)
{
	pending->wait = (struct token_wait){.arrival_ms = http_request_arrival_ms(request),
					    .done = on_token,
					    .ctx = pending};
	return token_request(endpoint->tokens ? endpoint->tokens : profile->tokens,
			     profile->settings->refresh_margin_s, &pending->wait, given);
}

/*
 * For a request that has waited for nothing yet. A pending is kept ready, so that the common way, a token
 * from the cache, allocates nothing.
 */
static void ask_at_once(struct endpoint *endpoint, struct http_request *request,
			const struct recipe_verdict *verdict)
{
	struct token_answer given;

	if (!endpoint->spare)
		endpoint->spare = xcalloc(1, sizeof(*endpoint->spare));
	struct pending *const pending = endpoint->spare;
	if (ask(endpoint, endpoint->profile, request, pending, &given)) {
		give(endpoint, endpoint->profile, request, &given);
		return;
	}
	endpoint->spare = NULL;
	pending_init(pending, endpoint, request, verdict);
	list_append(&endpoint->pending, &pending->link);
}

/* A request that waited for the rate goes on. */
static void proceed(struct pending *pending)
{
	struct endpoint *const endpoint = pending->endpoint;
	struct token_answer given;

	list_remove(&pending->link);
	if (pending->verdict.response) {
		answer(endpoint, pending->profile, pending->request, &pending->verdict);
		pending_free(pending);
	} else if (ask(endpoint, pending->profile, pending->request, pending, &given)) {
		on_token(pending, &given);
	} else {
		list_append(&endpoint->pending, &pending->link);
	}
}

static void on_rate(struct timer *timer)
{
	struct endpoint *const endpoint = CONTAINER_OF(timer, struct endpoint, queue_timer);

	while (!list_empty(&endpoint->queue) && rate_take(&endpoint->rate, now_ms(endpoint)))
		proceed(CONTAINER_OF(list_first(&endpoint->queue), struct pending, link));
	if (!list_empty(&endpoint->queue))
		timer_set_after(endpoint->context.timers, timer, rate_wait_ms(&endpoint->rate),
				on_rate);
}

static bool rate_allows(struct endpoint *endpoint)
{
	return list_empty(&endpoint->queue) && rate_take(&endpoint->rate, now_ms(endpoint));
}

static void wait_for_rate(struct endpoint *endpoint, struct pending *pending)
{
	list_append(&endpoint->queue, &pending->link);
	if (!timer_is_set(&endpoint->queue_timer))
		timer_set_after(endpoint->context.timers, &endpoint->queue_timer,
				rate_wait_ms(&endpoint->rate), on_rate);
}

static void on_pin_late(struct timer *timer)
{
	struct pending *const pending = CONTAINER_OF(timer, struct pending, timer);

	refuse(pending->endpoint, pending->profile, pending->request, pending->verdict.route,
	       &no_pin);
	pending_free(pending);
}

static void wait_for_pin(struct endpoint *endpoint, struct http_request *request,
			 const struct recipe_verdict *verdict)
{
	struct pending *const pending = xcalloc(1, sizeof(*pending));
	struct profile *const profile = endpoint->profile;

	pending_init(pending, endpoint, request, verdict);
	/* The head is gone when the pin comes: both ways it may turn out are judged now. */
	profile->backend->judge(profile->recipe, request, true, &pending->as_stranger);
	list_append(&endpoint->unpinned, &pending->link);
	timer_set(endpoint->context.timers, &pending->timer,
		  http_request_arrival_ms(request) + TOKEN_WAIT_MS, on_pin_late);
}

void endpoint_pinned(struct endpoint *endpoint)
{
	list_for_each(link, &endpoint->unpinned) {
		struct pending *const pending = CONTAINER_OF(link, struct pending, link);
		const struct address *const peer = http_request_peer(pending->request);
		timer_stop(endpoint->context.timers, &pending->timer);
		list_remove(link);
		if (admission_judge(&endpoint->admission, &pending->profile->settings->allow_peers,
				    endpoint->context.bridges, peer) != ADMISSION_YES)
			pending->verdict = pending->as_stranger;
		note_verdict(endpoint, pending->profile, &pending->verdict, peer);
		if (rate_allows(endpoint))
			proceed(pending);
		else
			wait_for_rate(endpoint, pending);
	}
}

static void on_request(void *ctx, struct http_request *request)
{
	struct endpoint *const endpoint = ctx;
	struct profile *const profile = endpoint->profile;
	const struct address *const peer = http_request_peer(request);
	const bool at_once = http_request_malformed(request) || http_request_has_body(request);
	struct recipe_verdict verdict;

	const enum admission_verdict admitted = admission_judge(&endpoint->admission,
								&profile->settings->allow_peers,
								endpoint->context.bridges, peer);
	profile->backend->judge(profile->recipe, request, admitted == ADMISSION_NO, &verdict);
	if (admitted == ADMISSION_LATER && !at_once) {
		wait_for_pin(endpoint, request, &verdict);
		return;
	}
	if (admitted == ADMISSION_YES && verdict.spoken_well)
		(void)admission_spoken(&endpoint->admission, endpoint->context.bridges, peer);
	note_verdict(endpoint, profile, &verdict, peer);
	if (!rate_allows(endpoint) && !at_once) {
		struct pending *const pending = xcalloc(1, sizeof(*pending));
		pending_init(pending, endpoint, request, &verdict);
		wait_for_rate(endpoint, pending);
	} else if (verdict.response) {
		answer(endpoint, profile, request, &verdict);
	} else {
		ask_at_once(endpoint, request, &verdict);
	}
}

static void on_gone(void *ctx, struct http_request *request)
{
	(void)ctx;
	pending_free(http_request_user(request));
}

static void on_closing(void *ctx, struct http_request *request)
{
	struct endpoint *const endpoint = ctx;
	struct pending *const pending = http_request_user(request);

	if (pending->verdict.response && !timer_is_set(&pending->timer))
		answer(endpoint, pending->profile, request, &pending->verdict);
	else
		refuse(endpoint, pending->profile, request, pending->verdict.route, &closing);
	pending_free(pending);
}

/* Whom it would refuse anyhow has no claim to a place. */
static bool is_admitted(void *ctx, const struct address *peer)
{
	const struct endpoint *const endpoint = ctx;

	return admission_judge(&endpoint->admission, &endpoint->profile->settings->allow_peers,
			       endpoint->context.bridges, peer) != ADMISSION_NO;
}

static void on_limit(void *ctx, enum http_limit limit, const struct address *peer)
{
	static const struct refusal refusals[] = {
		[HTTP_LIMIT_CONNECTIONS] = {"connections", "none", 503, NULL},
		[HTTP_LIMIT_SLOW] = {"slow", "none", 408, NULL},
		[HTTP_LIMIT_FOREIGN] = {"foreign", "none", 0, NULL},
	};
	struct endpoint *const endpoint = ctx;

	trail_refusal(endpoint, endpoint->profile, &refusals[limit], peer);
}

static void on_lost(void *ctx)
{
	const struct endpoint *const endpoint = ctx;

	endpoint->lost(endpoint->lost_ctx);
}

const struct http_handler endpoint_handler = {
	.request = on_request,
	.gone = on_gone,
	.closing = on_closing,
	.favours = is_admitted,
	.limit = on_limit,
	.lost = on_lost,
};
