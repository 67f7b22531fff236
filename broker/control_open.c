/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /v1/sessions: checked, perhaps tried, opened, and answered once or for as long as the lease lasts.
 */
#include "broker/control_sessions.h"

#include "broker/attach.h"
#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/base/err.h"
#include "broker/broker.h"
#include "broker/control_answer.h"
#include "broker/control_impl.h"
#include "broker/net/http_server.h"
#include "broker/preflight.h"
#include "broker/profile.h"
#include "broker/session.h"
#include "broker/session_wish.h"
#include "broker/token_cache.h"

#include <stdio.h>

/* A session, with its texts at their longest. */
#define MAX_LINE_BYTES ((size_t)32 << 10)

/* A POST whose preflight is under way. */
struct opening {
	struct broker *broker;
	struct http_request *request;
	struct session_wish wish;
	struct preflight_call *preflight;
};

/* The stream of a lease. */
struct lease {
	const struct broker *broker;
	struct session *session; /* NULL once it has ended */
	struct http_stream *stream;
};

static void opening_free(struct opening *opening)
{
	preflight_cancel(opening->preflight);
	session_wish_deinit(&opening->wish);
	free(opening);
}

/* The client has let go: its session ends with it. */
static void on_lease_gone(void *ctx)
{
	struct lease *const lease = ctx;
	struct session *const session = lease->session;

	session->ended = NULL;
	session_end(session, lease->broker->draining ? "broker_stop" : "lease");
	free(lease);
}

static int add_to_line(const char *bytes, size_t len, void *line)
{
	return buf_append(line, bytes, len);
}

/* One that may hold a ticket. */
static void write_line(const struct lease *lease, json_t *takes_json)
{
	json_auto_t *json = takes_json;
	AUTO_BUF struct buf line;

	buf_init_sensitive(&line, MAX_LINE_BYTES);
	if (json_dump_callback(json, add_to_line, &line, JSON_COMPACT))
		abort();
	buf_add(&line, "\n");
	http_stream_write(lease->stream, line.data);
}

static void on_attached(void *holder)
{
	write_line(holder, json_pack("{s:s}", "event", "attached"));
}

/* Who waits for a door is told why there will be none. */
static void say_not_attached(const struct lease *lease, const struct session_refusal *why)
{
	if (why)
		write_line(lease, control_error_json(why->code, why->message));
	else
		write_line(lease,
			   control_error_json(lease->broker->draining ? "shutting_down" :
									"conflict",
					      "the session ended before its door was there"));
}

/* The session has ended otherwise: its stream says so by its end. */
static void on_leased_session_ended(void *holder, struct session *session,
				    const struct session_refusal *why)
{
	struct lease *const lease = holder;

	if (session->attachment && !attachment_is_up(session->attachment))
		say_not_attached(lease, why);
	http_stream_end(lease->stream);
	free(lease);
}

static void answer_with_lease(const struct broker *broker, struct http_request *request,
			      struct session *session)
{
	struct lease *const lease = xcalloc(1, sizeof(*lease));
	json_t *const json = session_json(session);

	if (session->attachment &&
	    json_object_set_new(json, "door", attachment_json(session->attachment)))
		abort();
	lease->broker = broker;
	lease->session = session;
	session->ended = on_leased_session_ended;
	session->attached = on_attached;
	session->holder = lease;
	lease->stream = http_request_respond_stream(request, 201, "application/x-ndjson",
						    on_lease_gone, lease);
	write_line(lease, json);
}

static void open_session(struct broker *broker, struct http_request *request,
			 const struct session_wish *wish)
{
	struct session_refusal refusal;
	struct session *session;

	if (session_open(broker->sessions, wish, &session, &refusal))
		control_refuse(broker, request, refusal.code, refusal.message);
	else if (wish->lease)
		answer_with_lease(broker, request, session);
	else
		control_answer_json(broker, request, 201, session_json(session));
}

static bool is_allowed(const struct broker *broker, const struct http_request *request,
		       const struct session_wish *wish)
{
	gid_t groups[256];
	size_t count = ARRAY_LEN(groups);

	if (http_request_peer_uid(request) == 0)
		return true;
	if (http_request_peer_groups(request, groups, &count))
		count = 0;
	return profile_allows(broker_profile(broker, wish->profile), http_request_peer_gid(request),
			      groups, count);
}

/* Refuses what this caller may not have as things are now. */
static bool may_open(const struct broker *broker, struct http_request *request,
		     const struct session_wish *wish)
{
	struct session_refusal refusal;

	if (session_check(broker->sessions, wish, &refusal)) {
		control_refuse(broker, request, refusal.code, refusal.message);
		return false;
	}
	if (is_allowed(broker, request, wish))
		return true;
	control_refuse(broker, request, "forbidden",
		       "none of the caller's groups is in the profile's allow_groups");
	return false;
}

static void on_preflight(void *ctx, const struct preflight_verdict *verdict)
{
	struct opening *const opening = ctx;
	char message[256];

	opening->preflight = NULL;
	if (verdict->ok) {
		/* Again: the preflight may have taken its time. */
		if (may_open(opening->broker, opening->request, &opening->wish))
			open_session(opening->broker, opening->request, &opening->wish);
	} else {
		(void)snprintf(message, sizeof(message),
			       "%s (%s%s%s); the broker's log has the rest", verdict->text,
			       failure_class_name(verdict->class), verdict->ref ? ", ref " : "",
			       verdict->ref ? verdict->ref : "");
		control_refuse(opening->broker, opening->request, "mint_failed", message);
	}
	opening_free(opening);
}

static void try_first(struct broker *broker, struct http_request *request,
		      struct session_wish *takes_wish, enum preflight what)
{
	struct opening *const opening = xcalloc(1, sizeof(*opening));
	struct preflight_request preflight = {.what = what};

	opening->broker = broker;
	opening->request = request;
	opening->wish = *takes_wish;
	*takes_wish = (struct session_wish){0};
	preflight.tokens = session_tokens(broker->sessions, &opening->wish, &preflight.profile);
	opening->preflight = preflight_start(broker, &preflight, on_preflight, opening);
	token_entry_unref(preflight.tokens);
	http_request_set_user(request, opening);
}

void control_post_session(struct control *control, struct http_request *request, const char *id)
{
	struct broker *const broker = control->broker;
	struct session_wish wish = {0};
	struct session_refusal refusal = {0};
	enum preflight preflight;
	size_t len;
	const char *const body = http_request_body(request, &len);

	(void)id;
	const int read = session_wish_read(body, len, &wish, &preflight, &refusal);
	wish.uid = http_request_peer_uid(request);
	wish.pid = http_request_peer_pid(request);
	if (read)
		control_refuse(broker, request, refusal.code, refusal.message);
	else if (!may_open(broker, request, &wish))
		; /* refused */
	else if (preflight == PREFLIGHT_NONE)
		open_session(broker, request, &wish);
	else
		try_first(broker, request, &wish, preflight);
	session_wish_deinit(&wish);
}

void control_opening_gone(struct http_request *request)
{
	opening_free(http_request_user(request));
}

void control_opening_closing(struct http_request *request)
{
	struct opening *const opening = http_request_user(request);

	control_refuse(opening->broker, request, "shutting_down", "the broker is shutting down");
	opening_free(opening);
}
