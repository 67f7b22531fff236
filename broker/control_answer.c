/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/control_answer.h"

#include "broker/audit.h"
#include "broker/base/alloc.h"
#include "broker/broker.h"
#include "broker/net/http_server.h"

#include <string.h>

/* The contract, section 7. */
static const struct {
	const char *code;
	unsigned status;
} codes[] = {
	{"bad_request", 400},	  {"forbidden", 403},	{"profile_unknown", 404},
	{"session_unknown", 404}, {"conflict", 409},	{"no_recipe", 422},
	{"limit", 429},		  {"mint_failed", 502}, {"shutting_down", 503},
};

static void answer(const struct broker *broker, struct http_request *request, unsigned status,
		   const char *content_type, const char *text)
{
	struct http_response *const response = http_response_new(broker->ctl, status, content_type,
								 text, strlen(text),
								 HTTP_BODY_COPY);

	http_request_respond(request, response);
	http_response_free(response);
}

void control_answer_text(const struct broker *broker, struct http_request *request, unsigned status,
			 const char *content_type, const char *text)
{
	answer(broker, request, status, content_type, text);
}

void control_answer_empty(const struct broker *broker, struct http_request *request,
			  unsigned status)
{
	answer(broker, request, status, "application/json", "");
}

void control_answer_json(const struct broker *broker, struct http_request *request, unsigned status,
			 json_t *takes_body)
{
	json_auto_t *body = takes_body;
	AUTO_FREE char *text = json_dumps(body, JSON_COMPACT);

	if (!text)
		abort();
	AUTO_FREE char *line = xasprintf("%s\n", text);
	answer(broker, request, status, "application/json", line);
}

json_t *control_error_json(const char *code, const char *message)
{
	json_t *const error = json_pack("{s:{s:s,s:s}}", "error", "code", code, "message", message);

	if (!error)
		abort();
	return error;
}

void control_refuse_as(const struct broker *broker, struct http_request *request, unsigned status,
		       const char *code, const char *message)
{
	json_t *const event = audit_event(broker->audit, "control.refuse");

	audit_add_int(event, "uid", http_request_peer_uid(request));
	audit_add_int(event, "pid", http_request_peer_pid(request));
	audit_add_int(event, "status", status);
	audit_add(event, "reason", code);
	(void)audit_write(broker->audit, event);
	control_answer_json(broker, request, status, control_error_json(code, message));
}

void control_refuse(const struct broker *broker, struct http_request *request, const char *code,
		    const char *message)
{
	for (size_t i = 0; i < ARRAY_LEN(codes); i++)
		if (!strcmp(codes[i].code, code)) {
			control_refuse_as(broker, request, codes[i].status, code, message);
			return;
		}
	abort();
}
