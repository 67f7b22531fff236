/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/endpoint.h"

#include "broker/audit.h"
#include "broker/base/alloc.h"
#include "broker/base/clock.h"
#include "broker/base/err.h"
#include "broker/base/list.h"
#include "broker/base/log.h"
#include "broker/base/random.h"
#include "broker/base/secret.h"
#include "broker/net/bridges.h"
#include "broker/net/http_server.h"
#include "broker/net/listen.h"
#include "broker/profile.h"
#include "broker/rate.h"
#include "broker/recipe/recipe.h"
#include "broker/refusal_log.h"
#include "broker/token_cache.h"

#include <string.h>

/* How often changed counts reach the audit trail. */
#define COUNTS_MS 60000

struct endpoint {
	struct endpoint_context context;
	struct profile *profile;
	struct http_listener *listener;
	struct address wanted;
	struct address address;
	struct rate rate;
	struct list queue; /* requests that wait for the rate */
	struct timer queue_timer;
	struct list pending; /* requests that wait for a token */
	struct pending *spare;
	struct refusal_log *refusals;
	struct secret *served; /* the token that the audit trail knows was given */
	struct timer counts_timer;
	uint64_t requests;
	uint64_t tokens;
	uint64_t refused;
};

/* A request that could not be answered at once. */
struct pending {
	struct list link;
	struct endpoint *endpoint;
	struct profile *profile; /* the one it began with */
	struct http_request *request;
	struct recipe_verdict verdict;
	struct token_wait wait;
};

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
	list_remove(&pending->link);
	profile_unref(pending->profile);
	free(pending);
}

static void on_counts(struct timer *timer)
{
	struct endpoint *const endpoint = CONTAINER_OF(timer, struct endpoint, counts_timer);
	json_t *const event = audit_event(endpoint->context.audit, "session.counts");

	audit_add(event, "session", NULL);
	audit_add(event, "profile", endpoint->profile->settings->name);
	audit_add_int(event, "requests", (int64_t)endpoint->requests);
	audit_add_int(event, "tokens", (int64_t)endpoint->tokens);
	audit_add_int(event, "refused", (int64_t)endpoint->refused);
	(void)audit_write(endpoint->context.audit, event);
}

static void count(struct endpoint *endpoint, struct profile *profile, const char *route,
		  unsigned status)
{
	counters_request(profile->counters, route, status);
	endpoint->requests++;
	if (!timer_is_set(&endpoint->counts_timer))
		timer_set_after(endpoint->context.timers, &endpoint->counts_timer, COUNTS_MS,
				on_counts);
}

static void note_refusal(struct endpoint *endpoint, struct profile *profile,
			 const struct refusal *refusal, const struct address *peer)
{
	char text[ADDRESS_TEXT_SIZE];

	endpoint->refused++;
	counters_refused(profile->counters, refusal->reason);
	refusal_log_note(endpoint->refusals, refusal, address_format_ip(peer, text));
}

/* The first time that a token is given here is written before it is given. */
static int audit_serve(struct endpoint *endpoint, const struct profile *profile,
		       const struct http_request *request, const struct token_answer *answer)
{
	char peer[ADDRESS_TEXT_SIZE];

	if (endpoint->served == answer->token)
		return 0;
	json_t *const event = audit_event(endpoint->context.audit, "token.serve");
	audit_add(event, "session", NULL);
	audit_add(event, "profile", profile->settings->name);
	audit_add(event, "peer", address_format_ip(http_request_peer(request), peer));
	audit_add(event, "route", "token");
	audit_add_int(event, "status", 200);
	audit_add(event, "token", secret_fingerprint(answer->token));
	audit_add_int(event, "expires_in", answer->expires_in_s);
	if (audit_write(endpoint->context.audit, event))
		return -1;
	secret_unref(endpoint->served);
	endpoint->served = secret_ref(answer->token);
	return 0;
}

static void note_no_token(struct endpoint *endpoint, struct profile *profile,
			  const struct http_request *request, const struct recipe_token *token)
{
	const struct refusal refusal = {
		.reason = token->for_now ? "token_unavailable" : "token_denied",
		.route = "token",
		.status = token->for_now ? 503 : 403,
		.ref = token->ref,
	};

	note_refusal(endpoint, profile, &refusal, http_request_peer(request));
}

/* A refusal of our own that no mint stands behind. */
static void make_refusal(struct recipe_token *token, char ref[static TOKEN_REF_SIZE])
{
	random_hex(ref, TOKEN_REF_SIZE);
	*token = (struct recipe_token){
		.for_now = true,
		.description = failure_public_text(FAILURE_TEMPORARY),
		.ref = ref,
		.retry_after_s = 1,
	};
}

static void give(struct endpoint *endpoint, struct profile *profile, struct http_request *request,
		 const struct token_answer *answer)
{
	char ref[TOKEN_REF_SIZE];
	struct recipe_token token = {
		.token = answer->token,
		.expires_in_s = answer->expires_in_s,
		.for_now = answer->status == TOKEN_UNAVAILABLE,
		.description = failure_public_text(answer->why),
		.ref = answer->ref,
		.retry_after_s = answer->retry_after_s,
	};

	if (token.token && audit_serve(endpoint, profile, request, answer)) {
		make_refusal(&token, ref);
		log_error(
			"no token: ref=%s profile=%s audit_required is set and the trail cannot be written",
			ref, profile->settings->name);
	}
	if (token.token) {
		profile->counters->tokens++;
		endpoint->tokens++;
	} else {
		note_no_token(endpoint, profile, request, &token);
	}
	count(endpoint, profile, "token", profile->backend->give(profile->recipe, request, &token));
}

static void on_token(void *ctx, const struct token_answer *answer)
{
	struct pending *const pending = ctx;

	give(pending->endpoint, pending->profile, pending->request, answer);
	pending_free(pending);
}

/*
 * Asks for a token for a request that has no pending yet. One is kept ready, so that the common way,
 * a token from the cache, allocates nothing.
 */
static void ask(struct endpoint *endpoint, struct http_request *request,
		const struct recipe_verdict *verdict)
{
	struct token_answer answer;

	if (!endpoint->spare)
		endpoint->spare = xcalloc(1, sizeof(*endpoint->spare));
	struct pending *const pending = endpoint->spare;
	pending->wait = (struct token_wait){.arrival_ms = http_request_arrival_ms(request),
					    .done = on_token,
					    .ctx = pending};
	const struct profile *const profile = endpoint->profile;
	if (token_request(profile->tokens, profile->settings->refresh_margin_s, &pending->wait,
			  &answer)) {
		give(endpoint, endpoint->profile, request, &answer);
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
	struct profile *const profile = pending->profile;
	const struct recipe_verdict *const verdict = &pending->verdict;
	struct token_answer answer;

	list_remove(&pending->link);
	if (verdict->response) {
		count(endpoint, profile, verdict->route, verdict->status);
		http_request_respond(pending->request, verdict->response);
		pending_free(pending);
		return;
	}
	pending->wait = (struct token_wait){.arrival_ms = http_request_arrival_ms(pending->request),
					    .done = on_token,
					    .ctx = pending};
	if (token_request(profile->tokens, profile->settings->refresh_margin_s, &pending->wait,
			  &answer))
		on_token(pending, &answer);
	else
		list_append(&endpoint->pending, &pending->link);
}

static void on_rate(struct timer *timer)
{
	struct endpoint *const endpoint = CONTAINER_OF(timer, struct endpoint, queue_timer);
	const int64_t now_ms = clock_boot_ms(endpoint->context.timers->clock);

	while (!list_empty(&endpoint->queue) && rate_take(&endpoint->rate, now_ms))
		proceed(CONTAINER_OF(list_first(&endpoint->queue), struct pending, link));
	if (!list_empty(&endpoint->queue))
		timer_set_after(endpoint->context.timers, timer, rate_wait_ms(&endpoint->rate),
				on_rate);
}

static void wait_for_rate(struct endpoint *endpoint, struct http_request *request,
			  const struct recipe_verdict *verdict)
{
	struct pending *const pending = xcalloc(1, sizeof(*pending));

	pending_init(pending, endpoint, request, verdict);
	list_append(&endpoint->queue, &pending->link);
	if (!timer_is_set(&endpoint->queue_timer))
		timer_set_after(endpoint->context.timers, &endpoint->queue_timer,
				rate_wait_ms(&endpoint->rate), on_rate);
}

static bool peer_is_allowed(const struct endpoint *endpoint, const struct address *peer)
{
	const struct peers_config *const peers = &endpoint->profile->settings->allow_peers;

	if (!peers->automatic) {
		for (size_t i = 0; i < peers->count; i++)
			if (cidr_contains(&peers->networks[i], peer))
				return true;
		return false;
	}
	if (address_is_loopback(&endpoint->address))
		return address_is_loopback(peer);
	return bridges_contain(endpoint->context.bridges, peer);
}

static void on_request(void *ctx, struct http_request *request)
{
	struct endpoint *const endpoint = ctx;
	struct profile *const profile = endpoint->profile;
	const struct address *const peer = http_request_peer(request);
	struct recipe_verdict verdict;

	profile->backend->judge(profile->recipe, request, !peer_is_allowed(endpoint, peer),
				&verdict);
	if (verdict.refusal) {
		const struct refusal refusal = {verdict.refusal, verdict.route, verdict.status,
						NULL};
		note_refusal(endpoint, profile, &refusal, peer);
	}
	const bool at_once = http_request_malformed(request) || http_request_has_body(request);
	const bool may_go = list_empty(&endpoint->queue) &&
			    rate_take(&endpoint->rate, http_request_arrival_ms(request));
	if (!may_go && !at_once) {
		wait_for_rate(endpoint, request, &verdict);
	} else if (verdict.response) {
		count(endpoint, profile, verdict.route, verdict.status);
		http_request_respond(request, verdict.response);
	} else {
		ask(endpoint, request, &verdict);
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
	struct profile *const profile = pending->profile;
	char ref[TOKEN_REF_SIZE];
	struct recipe_token none;

	if (pending->verdict.response) {
		http_request_respond(request, pending->verdict.response);
	} else {
		make_refusal(&none, ref);
		log_info("no token: ref=%s profile=%s the endpoint is closing", ref,
			 profile->settings->name);
		note_no_token(endpoint, profile, request, &none);
		count(endpoint, profile, "token",
		      profile->backend->give(profile->recipe, request, &none));
	}
	pending_free(pending);
}

static void on_limit(void *ctx, enum http_limit limit, const struct address *peer)
{
	static const struct refusal refusals[] = {
		[HTTP_LIMIT_CONNECTIONS] = {"connections", "none", 503, NULL},
		[HTTP_LIMIT_SLOW] = {"slow", "none", 408, NULL},
	};
	struct endpoint *const endpoint = ctx;

	note_refusal(endpoint, endpoint->profile, &refusals[limit], peer);
}

static const struct http_handler handler = {
	.request = on_request,
	.gone = on_gone,
	.closing = on_closing,
	.limit = on_limit,
};

int endpoint_open(const struct endpoint_context *context, struct profile *profile,
		  struct endpoint **out, struct err *err)
{
	const struct profile_config *const limits = profile->settings;
	struct address address = profile->settings->listen;
	struct http_listener *listener;
	int fd;

	if (listen_tcp(&address, &fd, err) ||
	    http_listener_new(context->server, fd, &address, limits->endpoint_connections,
			      &listener, err))
		return err_prefix(err, "profile %s", profile->settings->name);
	struct endpoint *const endpoint = xcalloc(1, sizeof(*endpoint));
	endpoint->context = *context;
	endpoint->profile = profile_ref(profile);
	endpoint->listener = listener;
	endpoint->wanted = profile->settings->listen;
	endpoint->address = address;
	rate_init(&endpoint->rate, limits->endpoint_rate, clock_boot_ms(context->timers->clock));
	list_init(&endpoint->queue);
	list_init(&endpoint->pending);
	endpoint->refusals =
		refusal_log_new(context->timers, context->audit, profile->settings->name);
	http_listener_set_handler(listener, &handler, endpoint);
	*out = endpoint;
	return 0;
}

void endpoint_close(struct endpoint *endpoint)
{
	if (!endpoint)
		return;
	http_listener_close(endpoint->listener);
	timer_stop(endpoint->context.timers, &endpoint->queue_timer);
	if (timer_is_set(&endpoint->counts_timer)) {
		timer_stop(endpoint->context.timers, &endpoint->counts_timer);
		on_counts(&endpoint->counts_timer);
	}
	refusal_log_free(endpoint->refusals);
	secret_unref(endpoint->served);
	profile_unref(endpoint->profile);
	free(endpoint->spare);
	free(endpoint);
}

void endpoint_set_profile(struct endpoint *endpoint, struct profile *profile)
{
	const struct profile_config *const limits = profile->settings;

	profile_ref(profile);
	profile_unref(endpoint->profile);
	endpoint->profile = profile;
	http_listener_set_max_connections(endpoint->listener, limits->endpoint_connections);
	if (endpoint->rate.per_second != limits->endpoint_rate)
		rate_init(&endpoint->rate, limits->endpoint_rate,
			  clock_boot_ms(endpoint->context.timers->clock));
}

void endpoint_set_audit(struct endpoint *endpoint, struct audit *audit)
{
	endpoint->context.audit = audit;
	refusal_log_set_audit(endpoint->refusals, audit);
}

struct profile *endpoint_profile(const struct endpoint *endpoint)
{
	return endpoint->profile;
}

const struct address *endpoint_address(const struct endpoint *endpoint)
{
	return &endpoint->address;
}

const struct address *endpoint_wanted(const struct endpoint *endpoint)
{
	return &endpoint->wanted;
}
