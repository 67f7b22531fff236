/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/session.h"

#include "broker/attach.h"
#include "broker/audit.h"
#include "broker/base/alloc.h"
#include "broker/base/clock.h"
#include "broker/base/err.h"
#include "broker/base/log.h"
#include "broker/base/random.h"
#include "broker/broker.h"
#include "broker/config.h"
#include "broker/endpoint.h"
#include "broker/net/bridges.h"
#include "broker/net/listen.h"
#include "broker/net/loop.h"
#include "broker/profile.h"
#include "broker/recipe/recipe.h"
#include "broker/session_ports.h"
#include "broker/token_cache.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What `session_listen = auto` means. */
#define DEFAULT_BRIDGE "docker0"

struct sessions {
	struct broker *broker;
	struct list all;
	size_t count;
	struct session_ports ports;
};

struct sessions *sessions_new(struct broker *broker)
{
	struct sessions *const sessions = xcalloc(1, sizeof(*sessions));

	sessions->broker = broker;
	list_init(&sessions->all);
	session_ports_init(&sessions->ports, random_below(SESSION_PORTS_COUNT));
	return sessions;
}

void sessions_end(struct sessions *sessions)
{
	list_for_each(link, &sessions->all)
		session_end(CONTAINER_OF(link, struct session, link), "broker_stop");
}

void sessions_free(struct sessions *sessions)
{
	if (!sessions)
		return;
	sessions_end(sessions);
	free(sessions);
}

size_t sessions_count(const struct sessions *sessions)
{
	return sessions->count;
}

struct list *sessions_list(struct sessions *sessions)
{
	return &sessions->all;
}

size_t sessions_count_of(const struct sessions *sessions, const char *profile)
{
	size_t count = 0;

	list_for_each(link, &sessions->all) {
		const struct session *const session = CONTAINER_OF(link, struct session, link);
		count += !strcmp(session->profile->settings->name, profile);
	}
	return count;
}

struct session *sessions_find(struct sessions *sessions, const char *id)
{
	list_for_each(link, &sessions->all) {
		struct session *const session = CONTAINER_OF(link, struct session, link);
		if (!strcmp(session->id, id))
			return session;
	}
	return NULL;
}

const char *attach_way_name(enum attach_way attach)
{
	return attach == ATTACH_INSIDE ? "inside" : "gateway";
}

PRINTF_LIKE(3, 4)
static int refuse(struct session_refusal *refusal, const char *code, const char *fmt, ...)
{
	va_list ap;

	refusal->code = code;
	va_start(ap, fmt);
	(void)vsnprintf(refusal->message, sizeof(refusal->message), fmt, ap);
	va_end(ap);
	return -1;
}

static int check_limits(const struct sessions *sessions, uid_t uid, struct session_refusal *refusal)
{
	const struct broker_config *const limits = &sessions->broker->service.config->broker;
	size_t own = 0;

	if (sessions->count >= limits->max_sessions)
		return refuse(refusal, "limit", "%zu sessions are open, max_sessions is %u",
			      sessions->count, limits->max_sessions);
	list_for_each(link, &sessions->all)
		own += CONTAINER_OF(link, struct session, link)->owner == uid;
	if (own >= limits->max_sessions_per_user)
		return refuse(refusal, "limit",
			      "%zu sessions of uid %u are open, max_sessions_per_user is %u", own,
			      uid, limits->max_sessions_per_user);
	return 0;
}

int session_check(struct sessions *sessions, const struct session_wish *wish,
		  struct session_refusal *refusal)
{
	const struct profile *const profile = broker_profile(sessions->broker, wish->profile);
	struct quoted q;

	if (sessions->broker->draining)
		return refuse(refusal, "shutting_down", "the broker is shutting down");
	if (!profile)
		return refuse(refusal, "profile_unknown", "there is no profile %s",
			      quote_str(&q, wish->profile));
	if (wish->ttl_s > profile->settings->max_ttl_s)
		return refuse(refusal, "bad_request",
			      "ttl_s is %" PRId64 ", the profile's max_ttl %" PRId64 " s",
			      wish->ttl_s, profile->settings->max_ttl_s);
	return check_limits(sessions, wish->uid, refusal);
}

/* Where the session is to listen; the port is 0 where it is ours to choose. */
static int choose_address(const struct sessions *sessions, const struct session_wish *wish,
			  struct address *out, struct session_refusal *refusal)
{
	const struct address *const configured =
		&sessions->broker->service.config->broker.session_listen;
	char text[ADDRESS_TEXT_SIZE];

	if (address_is_set(&wish->listen)) {
		*out = wish->listen;
		if (address_is_loopback(out) || address_same_ip(out, configured) ||
		    bridges_serve(sessions->broker->bridges, out))
			return 0;
		return refuse(refusal, "bad_request",
			      "listen %s is neither loopback nor an address of a bridge without a "
			      "physical port",
			      address_format_ip(out, text));
	}
	if (address_is_set(configured)) {
		*out = *configured;
		return 0;
	}
	if (!bridges_address_of(DEFAULT_BRIDGE, out))
		return 0;
	return refuse(refusal, "bad_request",
		      "there is no " DEFAULT_BRIDGE
		      " to listen on: name an address with listen, or set session_listen");
}

/* On the port that was asked for, else on the one of ours that has been free for the longest. */
static int listen_somewhere(struct sessions *sessions, struct address *address, int *fd,
			    struct err *err)
{
	struct session_ports *const ports = &sessions->ports;

	if (address_port(address)) {
		if (listen_tcp(address, fd, err))
			return -1;
		session_ports_claim(ports, address_port(address));
		return 0;
	}
	for (size_t tries = ports->count; tries > 0; tries--) {
		struct address candidate = *address;
		address_set_port(&candidate, session_ports_take(ports));
		if (!listen_tcp(&candidate, fd, err)) {
			*address = candidate;
			return 0;
		}
		/* Somebody else's. */
		session_ports_give(ports, address_port(&candidate));
		if (err->code != ERR_BUSY)
			return -1;
	}
	return err_set(err, ERR_BUSY, "every port of %d to %d is in use", SESSION_PORTS_FIRST,
		       SESSION_PORTS_FIRST + SESSION_PORTS_COUNT - 1);
}

static void audit_open_session(const struct session *session, const struct session_wish *wish)
{
	struct audit *const audit = session->sessions->broker->audit;
	json_t *const event = audit_event(audit, "session.open");
	char text[ADDRESS_TEXT_SIZE];

	audit_add(event, "session", session->id);
	audit_add(event, "profile", session->profile->settings->name);
	audit_add(event, "label", session->label);
	audit_add_int(event, "uid", wish->uid);
	audit_add_int(event, "pid", wish->pid);
	audit_add(event, "attach", attach_way_name(wish->attach));
	audit_add(event, "listen", address_format(endpoint_address(session->endpoint), text));
	audit_add(event, "pin", pin_name(endpoint_admission(session->endpoint)->pin));
	audit_add_int(event, "ttl_s", (session->expires_wall_ms - session->created_wall_ms) / 1000);
	(void)audit_write(audit, event);
}

static void on_lost(void *ctx)
{
	static const struct session_refusal why =
		{"conflict", "the door does not leave its listening socket alone"};

	session_fail(ctx, "door_fault", &why);
}

static void on_expiry(struct timer *timer)
{
	session_end(CONTAINER_OF(timer, struct session, expiry), "expired");
}

static int check_peers(const struct sessions *sessions, const struct session_wish *wish,
		       const struct address *listen, struct session_refusal *refusal)
{
	const struct admission admission = {.loopback = address_is_loopback(listen)};
	char text[ADDRESS_TEXT_SIZE];

	for (size_t i = 0; i < wish->peer_count; i++)
		if (!admission_may_pin(&admission, sessions->broker->bridges, &wish->peers[i]))
			return refuse(
				refusal, "bad_request",
				"peer %s is no address of a sandbox: it is the host's own, or "
				"not one host's",
				address_format_ip(&wish->peers[i], text));
	return 0;
}

/* A listening socket at the chosen address. */
static int choose_gateway(struct sessions *sessions, const struct session_wish *wish,
			  struct address *out, int *fd, struct session_refusal *refusal)
{
	struct err err = {0};

	if (choose_address(sessions, wish, out, refusal) ||
	    check_peers(sessions, wish, out, refusal))
		return -1;
	if (listen_somewhere(sessions, out, fd, &err))
		return refuse(refusal, err.code == ERR_BUSY ? "conflict" : "bad_request", "%s",
			      err.text);
	return 0;
}

/* Nothing listens yet: where its door is to, for IPv4. */
static int choose_inside(const struct sessions *sessions, const struct session_wish *wish,
			 struct address *out, struct session_refusal *refusal)
{
	const struct profile *const profile = broker_profile(sessions->broker, wish->profile);
	const struct attach *const attach = sessions->broker->attach;
	const char *const *const inside = profile->backend->inside;

	if (attach_fault(attach))
		return refuse(refusal, "bad_request",
			      "attach \"inside\" is not to be had: %s; or attach by \"gateway\"",
			      attach_fault(attach));
	if (!inside || address_parse(out, inside[0]))
		return refuse(refusal, "bad_request",
			      "backend %s has no place inside a sandbox; attach by \"gateway\"",
			      profile->backend->name);
	if (wish->door_secret && attach_knows(attach, wish->door_secret))
		return refuse(refusal, "conflict", "another session has this door");
	return 0;
}

struct token_entry *session_tokens(struct sessions *sessions, const struct session_wish *wish,
				   struct profile **profile)
{
	*profile = broker_profile(sessions->broker, wish->profile);
	if ((*profile)->settings->token_sharing == TOKEN_SHARING_PROFILE)
		return token_entry_ref((*profile)->tokens);
	return profile_token_entry(*profile, sessions->broker->cache, wish->id);
}

static void set_times(struct session *session, const struct session_wish *wish)
{
	struct timer_queue *const timers = loop_timers(session->sessions->broker->loop);
	const int64_t ttl_s = wish->ttl_s ? wish->ttl_s : session->profile->settings->max_ttl_s;

	session->created_wall_ms = clock_wall_ms(timers->clock);
	session->expires_wall_ms = session->created_wall_ms + ttl_s * 1000;
	timer_set_after(timers, &session->expiry, ttl_s * 1000, on_expiry);
}

int session_open(struct sessions *sessions, const struct session_wish *wish, struct session **out,
		 struct session_refusal *refusal)
{
	struct address address;
	struct err err = {0};
	int fd = -1;

	if (wish->attach == ATTACH_INSIDE ? choose_inside(sessions, wish, &address, refusal) :
					    choose_gateway(sessions, wish, &address, &fd, refusal))
		return -1;
	struct session *const session = xcalloc(1, sizeof(*session));
	struct profile *profile;
	session->sessions = sessions;
	session->owner = wish->uid;
	session->leased = wish->lease;
	session->label = wish->label ? xstrdup(wish->label) : NULL;
	memcpy(session->id, wish->id, sizeof(session->id));
	session->tokens = session_tokens(sessions, wish, &profile);
	const struct endpoint_context context = broker_endpoint_context(sessions->broker);
	const struct endpoint_options options = {
		.address = address,
		.session = session->id,
		.label = session->label,
		.inside = wish->attach == ATTACH_INSIDE,
		.lost = on_lost,
		.lost_ctx = session,
		.pin = wish->attach == ATTACH_INSIDE ? PIN_NONE : wish->pin,
		.tokens = session->tokens,
	};
	if (endpoint_open(&context, profile, &options, fd, &session->endpoint, &err)) {
		session_ports_give(&sessions->ports, address_port(&address));
		token_entry_unref(session->tokens);
		free(session->label);
		free(session);
		return refuse(refusal, "limit", "%s", err.text);
	}
	session->profile = profile_ref(profile);
	if (wish->peer_count)
		endpoint_pin(session->endpoint, wish->peers, wish->peer_count);
	if (wish->attach == ATTACH_INSIDE)
		session->attachment =
			attachment_new(sessions->broker->attach, session, wish->door_secret);
	set_times(session, wish);
	list_append(&sessions->all, &session->link);
	sessions->count++;
	audit_open_session(session, wish);
	*out = session;
	return 0;
}

void session_end(struct session *session, const char *reason)
{
	session_fail(session, reason, NULL);
}

void session_fail(struct session *session, const char *reason, const struct session_refusal *why)
{
	struct sessions *const sessions = session->sessions;
	struct broker *const broker = sessions->broker;
	struct endpoint_counts counts;

	if (session->ended)
		session->ended(session->holder, session, why);
	timer_stop(loop_timers(broker->loop), &session->expiry);
	list_remove(&session->link);
	sessions->count--;
	json_t *const event = audit_event(broker->audit, "session.close");
	audit_add(event, "session", session->id);
	audit_add(event, "profile", session->profile->settings->name);
	audit_add(event, "label", session->label);
	audit_add(event, "reason", reason);
	session_ports_give(&sessions->ports, address_port(endpoint_address(session->endpoint)));
	endpoint_close(session->endpoint, &counts);
	attachment_free(session->attachment);
	audit_add_int(event, "requests", (int64_t)counts.requests);
	audit_add_int(event, "tokens", (int64_t)counts.tokens);
	audit_add_int(event, "refused", (int64_t)counts.refused);
	(void)audit_write(broker->audit, event);
	token_entry_unref(session->tokens);
	profile_unref(session->profile);
	free(session->label);
	free(session);
}

void sessions_recheck(struct sessions *sessions)
{
	list_for_each(link, &sessions->all) {
		struct session *const session = CONTAINER_OF(link, struct session, link);
		const struct profile_config *const held = session->profile->settings;
		const struct profile *const now = broker_profile(sessions->broker, held->name);
		endpoint_set_audit(session->endpoint, sessions->broker->audit);
		if (!now)
			session_end(session, "profile_gone");
		else if (strcmp(now->settings->service_account, held->service_account) != 0 ||
			 !strv_equal(&now->settings->scopes, &held->scopes))
			session_end(session, "profile_changed");
	}
}

void session_endpoint(const struct session *session, char text[static SESSION_ENDPOINT_SIZE])
{
	const struct address *const address = endpoint_address(session->endpoint);
	char ip[ADDRESS_TEXT_SIZE];

	if (session->attachment)
		session_host(session, text);
	else if (address_is_loopback(address))
		(void)snprintf(text, SESSION_ENDPOINT_SIZE, "%s", address_format(address, ip));
	else
		(void)snprintf(text, SESSION_ENDPOINT_SIZE, "%s:%u",
			       session->profile->settings->advertise_host, address_port(address));
}

void session_host(const struct session *session, char text[static SESSION_ENDPOINT_SIZE])
{
	const struct address *const address = endpoint_address(session->endpoint);
	char ip[ADDRESS_TEXT_SIZE];

	(void)snprintf(text, SESSION_ENDPOINT_SIZE, "%s",
		       session->attachment || address_is_loopback(address) ?
			       address_format_ip(address, ip) :
			       session->profile->settings->advertise_host);
}
