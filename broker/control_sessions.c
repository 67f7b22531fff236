/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/control_sessions.h"

#include "broker/broker.h"
#include "broker/control_answer.h"
#include "broker/control_impl.h"
#include "broker/endpoint.h"
#include "broker/net/bridges.h"
#include "broker/net/http_server.h"
#include "broker/session.h"
#include "broker/session_wish.h"

static bool is_visible(const struct session *session, const struct http_request *request)
{
	const uid_t uid = http_request_peer_uid(request);

	return uid == session->owner || uid == 0 || uid == geteuid();
}

/* The caller's session of that id; answers and returns NULL where there is none. */
static struct session *find(const struct control *control, struct http_request *request,
			    const char *id)
{
	struct session *const session = sessions_find(control->broker->sessions, id);

	if (session && is_visible(session, request))
		return session;
	control_refuse(control->broker, request, "session_unknown", "there is no such session");
	return NULL;
}

void control_get_sessions(struct control *control, struct http_request *request, const char *id)
{
	json_t *const list = json_array();

	(void)id;
	list_for_each(link, sessions_list(control->broker->sessions)) {
		const struct session *const session = CONTAINER_OF(link, struct session, link);
		if (is_visible(session, request))
			(void)json_array_append_new(list, session_json(session));
	}
	control_answer_json(control->broker, request, 200, json_pack("{s:o}", "sessions", list));
}

void control_get_session(struct control *control, struct http_request *request, const char *id)
{
	const struct session *const session = find(control, request, id);

	if (session)
		control_answer_json(control->broker, request, 200, session_json(session));
}

void control_delete_session(struct control *control, struct http_request *request, const char *id)
{
	struct session *const session = find(control, request, id);

	if (!session)
		return;
	session_end(session, "deleted");
	control_answer_empty(control->broker, request, 204);
}

static bool may_all_be_pinned(const struct broker *broker, const struct session *session,
			      const struct session_wish *wish)
{
	const struct admission *const admission = endpoint_admission(session->endpoint);

	for (size_t i = 0; i < wish->peer_count; i++)
		if (!admission_may_pin(admission, broker->bridges, &wish->peers[i]))
			return false;
	return true;
}

static void pin(const struct broker *broker, struct http_request *request, struct session *session,
		const struct session_wish *wish)
{
	const struct admission *const admission = endpoint_admission(session->endpoint);

	if (session->attachment) {
		control_refuse(broker, request, "bad_request",
			       "a session inside its sandbox has no peer to pin");
		return;
	}
	if (!may_all_be_pinned(broker, session, wish)) {
		control_refuse(broker, request, "bad_request",
			       "peer: an address is the host's own, or not one host's");
		return;
	}
	if (admission->count && !admission_is_pinned_to(admission, wish->peers, wish->peer_count)) {
		control_refuse(broker, request, "conflict",
			       "the session is pinned to other addresses");
		return;
	}
	if (!admission->count)
		endpoint_pin(session->endpoint, wish->peers, wish->peer_count);
	control_answer_json(broker, request, 200, session_json(session));
}

void control_patch_session(struct control *control, struct http_request *request, const char *id)
{
	struct session *const session = find(control, request, id);
	struct session_wish wish = {0};
	struct session_refusal refusal;
	size_t len;
	const char *const body = http_request_body(request, &len);

	if (!session)
		return;
	if (session_peers_read(body, len, &wish, &refusal))
		control_refuse(control->broker, request, refusal.code, refusal.message);
	else
		pin(control->broker, request, session, &wish);
	session_wish_deinit(&wish);
}
