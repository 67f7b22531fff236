/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/client/broker_client.h"

#include "broker/base/alloc.h"
#include "broker/base/err.h"
#include "broker/base/json.h"
#include "broker/base/log.h"
#include "broker/base/secret.h"
#include "broker/net/http_client.h"
#include "broker/net/loop.h"
#include "sandbox/client/exit_status.h"

#include <string.h>

/* What the broker caps its own answers at. */
#define MAX_ANSWER_BYTES ((size_t)4 << 20)
#define BASE_URL "http://postern"

struct broker_client {
	struct loop *loop;
	struct http_client *http;
	char *socket_path;
};

struct broker_call {
	struct http_call *http;
	broker_done *done;
	void *ctx;
};

struct broker_lease {
	struct broker_client *client;
	struct http_call *http;
	struct timer opening; /* bounds the wait for the first line only */
	bool open;
	const struct broker_lease_handler *handler;
	void *ctx;
};

/* What a refusal means for who asked: contract, sections 7 and 8. */
static const struct {
	const char *code;
	enum status status;
} refusals[] = {
	{"bad_request", STATUS_USAGE},	     {"forbidden", STATUS_REFUSED},
	{"profile_unknown", STATUS_REFUSED}, {"session_unknown", STATUS_REFUSED},
	{"conflict", STATUS_REFUSED},	     {"no_recipe", STATUS_REFUSED},
	{"limit", STATUS_REFUSED},	     {"mint_failed", STATUS_CHECK},
	{"shutting_down", STATUS_BROKER},
};

int broker_client_new(struct loop *loop, const char *socket_path, struct broker_client **out,
		      struct err *err)
{
	static const struct http_client_options options = {.user_agent =
								   "postern/" POSTERN_VERSION};
	struct http_client *http;

	if (http_client_new(loop, &options, &http, err))
		return -1;
	struct broker_client *const client = xcalloc(1, sizeof(*client));
	client->loop = loop;
	client->http = http;
	client->socket_path = xstrdup(socket_path);
	*out = client;
	return 0;
}

void broker_client_free(struct broker_client *client)
{
	if (!client)
		return;
	http_client_free(client->http);
	free(client->socket_path);
	free(client);
}

const char *broker_client_path(const struct broker_client *client)
{
	return client->socket_path;
}

static enum status refusal_status(const char *code)
{
	for (size_t i = 0; i < ARRAY_LEN(refusals); i++)
		if (!strcmp(code, refusals[i].code))
			return refusals[i].status;
	return STATUS_BROKER;
}

/* Fills `answer` from {"error":{"code","message"}}. False where the object is something else. */
static bool read_error(const json_t *body, struct broker_answer *answer)
{
	const json_t *const error = json_object_get(body, "error");
	const char *const code = json_get_string(error, "code");
	const char *const message = json_get_string(error, "message");

	if (!code || !message)
		return false;
	answer->exit_status = refusal_status(code);
	answer->code = code;
	answer->message = message;
	return true;
}

static void read_unreachable(const struct http_answer *http, struct broker_answer *answer)
{
	answer->exit_status = STATUS_BROKER;
	answer->code = "unreachable";
	answer->message = http->failure_text;
}

static void read_strange(struct broker_answer *answer)
{
	answer->exit_status = STATUS_BROKER;
	answer->code = "unreachable";
	answer->message = "what answers there is not a broker";
}

/* The body is the caller's reference; the answer borrows from it and from `http`. */
static json_t *read_answer(const struct http_answer *http, struct broker_answer *answer)
{
	*answer = (struct broker_answer){.code = "", .message = ""};
	if (http->failure != HTTP_FAILURE_NONE) {
		read_unreachable(http, answer);
		return NULL;
	}
	json_t *const body = json_read_object(http->body, http->body_len);
	const bool good = http->status >= 200 && http->status < 300;
	/* Some answers are a word: they say what they say by their status. */
	if (good && (body || http->status == 204 ||
		     !strncmp(http->content_type, "text/plain", strlen("text/plain"))))
		answer->body = body;
	else if (good || !read_error(body, answer))
		read_strange(answer);
	return body;
}

static void on_answer(void *ctx, const struct http_answer *http)
{
	AUTO_FREE struct broker_call *call = ctx;
	struct broker_answer answer;
	json_auto_t *body = read_answer(http, &answer);

	(void)body;
	call->done(call->ctx, &answer);
}

static struct http_call *start(struct broker_client *client, struct http_client_request *request,
			       const char *path, const json_t *body, http_client_done *done,
			       void *ctx)
{
	AUTO_FREE char *url = xasprintf(BASE_URL "%s", path);
	AUTO_FREE char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	AUTO_SECRET struct secret *bytes = text ? secret_new(text, strlen(text)) : NULL;

	request->url = url;
	request->body = bytes;
	request->content_type = body ? "application/json" : NULL;
	request->unix_socket = client->socket_path;
	request->max_answer_bytes = MAX_ANSWER_BYTES;
	return http_client_start(client->http, request, done, ctx);
}

struct broker_call *broker_client_call(struct broker_client *client, const char *method,
				       const char *path, const json_t *body, broker_done *done,
				       void *ctx)
{
	struct broker_call *const call = xcalloc(1, sizeof(*call));
	const bool opens = !strcmp(method, "POST");
	struct http_client_request request = {
		.method = method,
		.timeout_ms = opens ? BROKER_OPEN_TIMEOUT_MS : BROKER_CALL_TIMEOUT_MS,
	};

	call->done = done;
	call->ctx = ctx;
	call->http = start(client, &request, path, body, on_answer, call);
	return call;
}

void broker_call_cancel(struct broker_call *call)
{
	if (!call)
		return;
	http_call_cancel(call->http);
	free(call);
}

int broker_answer_err(const struct broker_client *client, const struct broker_answer *answer,
		      struct err *err)
{
	struct quoted path;

	if (!strcmp(answer->code, "unreachable"))
		return err_set(err, ERR_SYSTEM, "no broker answers at %s: %s",
			       quote_str(&path, client->socket_path), answer->message);
	return err_set(err, ERR_INVALID, "the broker refuses: %s (%s)", answer->message,
		       answer->code);
}

/* An answer that is waited for. */
struct ask {
	const struct broker_client *client;
	bool done;
	int exit_status;
	json_t *body;
	struct err *err;
};

static void on_asked(void *ctx, const struct broker_answer *answer)
{
	struct ask *const ask = ctx;

	ask->done = true;
	ask->exit_status = answer->exit_status;
	ask->body = json_incref((json_t *)answer->body);
	if (answer->exit_status)
		(void)broker_answer_err(ask->client, answer, ask->err);
}

int broker_client_ask(struct broker_client *client, const struct broker_question *question,
		      json_t **body, struct err *err)
{
	struct ask ask = {.client = client, .err = err};
	struct broker_call *const call = broker_client_call(client, question->method,
							    question->path, question->body,
							    on_asked, &ask);

	while (!ask.done)
		if (loop_turn(client->loop, err)) {
			broker_call_cancel(call);
			return STATUS_FAILED;
		}
	if (body)
		*body = ask.body;
	else
		json_decref(ask.body);
	return ask.exit_status;
}

bool broker_session_id_is_valid(const char *id)
{
	return strlen(id) == BROKER_SESSION_ID_SIZE - 1 &&
	       strspn(id, "0123456789abcdef") == BROKER_SESSION_ID_SIZE - 1;
}

char *broker_session_path(const char *id)
{
	return xasprintf("/v1/sessions/%s", id);
}

static void lease_free(struct broker_lease *lease)
{
	timer_stop(loop_timers(lease->client->loop), &lease->opening);
	free(lease);
}

static void lease_end(struct broker_lease *lease, const struct broker_answer *why)
{
	lease->handler->ended(lease->ctx, why);
	lease_free(lease);
}

static void lease_abandon(struct broker_lease *lease, const struct broker_answer *why)
{
	http_call_cancel(lease->http);
	lease_end(lease, why);
}

static void on_opening_late(struct timer *timer)
{
	static const struct broker_answer late = {.exit_status = STATUS_BROKER,
						  .code = "unreachable",
						  .message = "it does not answer in time"};

	lease_abandon(CONTAINER_OF(timer, struct broker_lease, opening), &late);
}

static void on_lease_line(void *ctx, const char *line, size_t len)
{
	struct broker_lease *const lease = ctx;
	struct broker_answer answer = {.code = "", .message = ""};
	json_auto_t *object = json_read_object(line, len);

	if (object && read_error(object, &answer)) {
		lease_abandon(lease, &answer);
	} else if (!object || (!lease->open && !json_get_string(object, "id"))) {
		read_strange(&answer);
		lease_abandon(lease, &answer);
	} else if (lease->open) {
		if (lease->handler->event)
			lease->handler->event(lease->ctx, object);
	} else {
		lease->open = true;
		timer_stop(loop_timers(lease->client->loop), &lease->opening);
		lease->handler->opened(lease->ctx, object);
	}
}

static void on_lease_end(void *ctx, const struct http_answer *http)
{
	struct broker_answer answer;
	json_auto_t *body = read_answer(http, &answer);

	(void)body;
	/* A good end of a stream has no body: it is an end all the same. */
	if (!answer.exit_status || (http->failure == HTTP_FAILURE_NONE && http->status < 300)) {
		answer.exit_status = STATUS_BROKER;
		answer.code = "ended";
		answer.message = "the session has ended";
	}
	lease_end(ctx, &answer);
}

struct broker_lease *broker_lease_open(struct broker_client *client, const json_t *request,
				       const struct broker_lease_handler *handler, void *ctx)
{
	struct broker_lease *const lease = xcalloc(1, sizeof(*lease));
	json_auto_t *body = json_copy((json_t *)request);
	struct http_client_request http = {.method = "POST",
					   .timeout_ms = HTTP_CLIENT_NO_TIMEOUT,
					   .line = on_lease_line};

	lease->client = client;
	lease->handler = handler;
	lease->ctx = ctx;
	(void)json_object_set_new(body, "lease", json_true());
	timer_set_after(loop_timers(client->loop), &lease->opening, BROKER_OPEN_TIMEOUT_MS,
			on_opening_late);
	lease->http = start(client, &http, "/v1/sessions", body, on_lease_end, lease);
	return lease;
}

void broker_lease_close(struct broker_lease *lease)
{
	if (!lease)
		return;
	http_call_cancel(lease->http);
	lease_free(lease);
}
