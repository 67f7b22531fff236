/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/control.h"

#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/broker.h"
#include "broker/control_answer.h"
#include "broker/control_impl.h"
#include "broker/control_sessions.h"
#include "broker/net/http_server.h"
#include "broker/session.h"
#include "broker/status.h"

#include <string.h>

#define MAX_ANSWER_BYTES ((size_t)4 << 20)
/* The contract, section 10. */
#define MAX_BODY_BYTES ((size_t)64 << 10)

static void get_status(struct control *control, struct http_request *request, const char *id)
{
	(void)id;
	control_answer_json(control->broker, request, 200, status_json(control->broker));
}

static void get_metrics(struct control *control, struct http_request *request, const char *id)
{
	AUTO_BUF struct buf text;

	(void)id;
	buf_init(&text, MAX_ANSWER_BYTES);
	status_metrics(control->broker, &text);
	control_answer_text(control->broker, request, 200, "text/plain; version=0.0.4", text.data);
}

static void get_health(struct control *control, struct http_request *request, const char *id)
{
	(void)id;
	control_answer_text(control->broker, request, 200, "text/plain", "ok\n");
}

static void get_readiness(struct control *control, struct http_request *request, const char *id)
{
	(void)id;
	if (control->broker->draining)
		control_refuse(control->broker, request, "shutting_down",
			       "the broker is shutting down");
	else
		control_answer_text(control->broker, request, 200, "text/plain", "ready\n");
}

typedef void call_fn(struct control *control, struct http_request *request, const char *id);

/* A path that ends in "/" is followed by the id of a session. */
static const struct route {
	const char *method;
	const char *path;
	call_fn *call;
	bool takes_body;
} routes[] = {
	{"GET", "/v1/status", get_status, false},
	{"GET", "/metrics", get_metrics, false},
	{"GET", "/healthz", get_health, false},
	{"GET", "/readyz", get_readiness, false},
	{"GET", "/v1/sessions", control_get_sessions, false},
	{"POST", "/v1/sessions", control_post_session, true},
	{"GET", "/v1/sessions/", control_get_session, false},
	{"PATCH", "/v1/sessions/", control_patch_session, true},
	{"DELETE", "/v1/sessions/", control_delete_session, false},
};

/* True where the path is the route's; `id` gets what follows it. */
static bool is_path(const struct route *route, const char *target, size_t path_len,
		    char id[static SESSION_ID_SIZE])
{
	const size_t len = strlen(route->path);

	id[0] = '\0';
	if (route->path[len - 1] != '/')
		return path_len == len && !strncmp(target, route->path, len);
	if (path_len != len + SESSION_ID_SIZE - 1 || strncmp(target, route->path, len) != 0)
		return false;
	memcpy(id, target + len, SESSION_ID_SIZE - 1);
	id[SESSION_ID_SIZE - 1] = '\0';
	return strspn(id, "0123456789abcdef") == SESSION_ID_SIZE - 1;
}

static bool is_method(const struct route *route, const char *method)
{
	return !strcmp(route->method, method) ||
	       (!strcmp(route->method, "GET") && !strcmp(method, "HEAD"));
}

static void take(struct control *control, struct http_request *request, const struct route *route,
		 const char *id)
{
	size_t body_len;

	(void)http_request_body(request, &body_len);
	if (body_len && !route->takes_body)
		control_refuse(control->broker, request, "bad_request", "this call takes no body");
	else
		route->call(control, request, id);
}

static void dispatch(struct control *control, struct http_request *request)
{
	size_t target_len;
	const char *const target = http_request_target(request, &target_len);
	const size_t path_len = strcspn(target, "?");
	const char *const method = http_request_method(request);
	char id[SESSION_ID_SIZE];
	bool known = false;

	for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
		if (!is_path(&routes[i], target, path_len, id))
			continue;
		known = true;
		if (is_method(&routes[i], method)) {
			take(control, request, &routes[i], id);
			return;
		}
	}
	if (known)
		control_refuse_as(control->broker, request, 405, "bad_request",
				  "this path does not take that method");
	else if (!strncmp(target, "/v1/sessions/", strlen("/v1/sessions/")))
		control_refuse(control->broker, request, "session_unknown",
			       "there is no such session");
	else
		control_refuse_as(control->broker, request, 404, "bad_request",
				  "no such path; there are /v1/sessions, /v1/status, /metrics, "
				  "/healthz and /readyz");
}

static void on_request(void *ctx, struct http_request *request)
{
	struct control *const control = ctx;

	if (http_request_malformed(request))
		control_refuse(control->broker, request, "bad_request", "not plain HTTP");
	else if (http_request_has_body(request))
		control_refuse_as(control->broker, request, 413, "bad_request",
				  "a body is at most 64 KiB, with one length");
	else
		dispatch(control, request);
}

static void on_gone(void *ctx, struct http_request *request)
{
	(void)ctx;
	control_opening_gone(request);
}

static void on_closing(void *ctx, struct http_request *request)
{
	(void)ctx;
	control_opening_closing(request);
}

static const struct http_handler handler = {.request = on_request,
					    .gone = on_gone,
					    .closing = on_closing};

int control_open(struct broker *broker, int takes_fd, struct control **out, struct err *err)
{
	struct http_listener *listener;

	if (http_listener_new(broker->ctl, takes_fd, NULL, BROKER_MAX_CONTROL_CONNECTIONS,
			      &listener, err))
		return -1;
	struct control *const control = xcalloc(1, sizeof(*control));
	*control = (struct control){.broker = broker, .listener = listener};
	http_listener_set_max_body(listener, MAX_BODY_BYTES);
	http_listener_set_handler(listener, &handler, control);
	*out = control;
	return 0;
}

void control_close(struct control *control)
{
	if (!control)
		return;
	http_listener_close(control->listener);
	free(control);
}
