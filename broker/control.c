/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/control.h"

#include "broker/audit.h"
#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/broker.h"
#include "broker/net/http_server.h"
#include "broker/status.h"

#include <string.h>

#define MAX_ANSWER_BYTES ((size_t)4 << 20)

struct control {
	struct broker *broker;
	struct http_listener *listener;
};

static void answer_text(const struct control *control, struct http_request *request,
			unsigned status, const char *content_type, const char *text, size_t len)
{
	struct http_response *const response = http_response_new(control->broker->ctl, status,
								 content_type, text, len,
								 HTTP_BODY_COPY);

	http_request_respond(request, response);
	http_response_free(response);
}

static void answer_json(const struct control *control, struct http_request *request,
			unsigned status, json_t *takes_body)
{
	json_auto_t *body = takes_body;
	AUTO_FREE char *text = json_dumps(body, JSON_COMPACT);

	if (!text)
		abort();
	AUTO_FREE char *line = xasprintf("%s\n", text);
	answer_text(control, request, status, "application/json", line, strlen(line));
}

static void refuse(const struct control *control, struct http_request *request, unsigned status,
		   const char *code, const char *message)
{
	struct audit *const audit = control->broker->audit;
	json_t *const event = audit_event(audit, "control.refuse");

	audit_add_int(event, "uid", http_request_peer_uid(request));
	audit_add_int(event, "pid", http_request_peer_pid(request));
	audit_add_int(event, "status", status);
	audit_add(event, "reason", code);
	(void)audit_write(audit, event);
	answer_json(control, request, status,
		    json_pack("{s:{s:s,s:s}}", "error", "code", code, "message", message));
}

static void get_status(const struct control *control, struct http_request *request)
{
	answer_json(control, request, 200, status_json(control->broker));
}

static void get_metrics(const struct control *control, struct http_request *request)
{
	AUTO_BUF struct buf text;

	buf_init(&text, MAX_ANSWER_BYTES);
	status_metrics(control->broker, &text);
	answer_text(control, request, 200, "text/plain; version=0.0.4", text.data, text.len);
}

static void get_health(const struct control *control, struct http_request *request)
{
	answer_text(control, request, 200, "text/plain", "ok\n", strlen("ok\n"));
}

static void get_readiness(const struct control *control, struct http_request *request)
{
	if (control->broker->draining)
		refuse(control, request, 503, "shutting_down", "the broker is shutting down");
	else
		answer_text(control, request, 200, "text/plain", "ready\n", strlen("ready\n"));
}

static const struct {
	const char *path;
	void (*get)(const struct control *control, struct http_request *request);
} routes[] = {
	{"/v1/status", get_status},
	{"/metrics", get_metrics},
	{"/healthz", get_health},
	{"/readyz", get_readiness},
};

static void on_request(void *ctx, struct http_request *request)
{
	const struct control *const control = ctx;
	size_t len;
	const char *const target = http_request_target(request, &len);
	const size_t path_len = strcspn(target, "?");
	const char *const method = http_request_method(request);

	if (http_request_malformed(request)) {
		refuse(control, request, 400, "bad_request", "not plain HTTP");
		return;
	}
	if (http_request_has_body(request)) {
		refuse(control, request, 413, "bad_request", "no call here takes a body");
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
		if (strlen(routes[i].path) != path_len ||
		    strncmp(routes[i].path, target, path_len) != 0)
			continue;
		if (!strcmp(method, "GET") || !strcmp(method, "HEAD"))
			routes[i].get(control, request);
		else
			refuse(control, request, 405, "bad_request", "this path takes GET");
		return;
	}
	refuse(control, request, 404, "bad_request",
	       "no such path; there are /v1/status, /metrics, /healthz and /readyz");
}

/* Every call is answered at once: nothing waits that could go or be closed. */
static void on_end(void *ctx, struct http_request *request)
{
	(void)ctx;
	(void)request;
}

static const struct http_handler handler = {.request = on_request,
					    .gone = on_end,
					    .closing = on_end};

int control_open(struct broker *broker, int takes_fd, struct control **out, struct err *err)
{
	struct http_listener *listener;

	if (http_listener_new(broker->ctl, takes_fd, NULL, BROKER_MAX_CONTROL_CONNECTIONS,
			      &listener, err))
		return -1;
	struct control *const control = xcalloc(1, sizeof(*control));
	*control = (struct control){.broker = broker, .listener = listener};
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
