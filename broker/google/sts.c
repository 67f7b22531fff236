/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/google/sts.h"

#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/base/json.h"
#include "broker/base/secret.h"
#include "broker/google/access_token.h"
#include "broker/google/form.h"
#include "broker/net/http_client.h"

#include <string.h>
#include <strings.h>

#define TOKEN_EXCHANGE "urn:ietf:params:oauth:grant-type:token-exchange"
#define ACCESS_TOKEN "urn:ietf:params:oauth:token-type:access_token"

/* The fields of a credential file and a subject token of 64 KiB each, escaped. */
#define MAX_BODY_BYTES ((size_t)512 << 10)
#define MAX_OPTIONS_BYTES 1024

struct sts_call {
	struct http_call *http;
	sts_done *done;
	void *ctx;
};

/* Google wants this JSON escaped before it is escaped as a field of the form. */
static void add_options(struct buf *body, const char *user_project)
{
	AUTO_BUF struct buf options;

	json_auto_t *root = json_pack("{s:s}", "userProject", user_project);
	AUTO_FREE char *json = json_dumps(root, JSON_COMPACT);
	buf_init(&options, MAX_OPTIONS_BYTES);
	form_escape(&options, json ? json : "{}");
	form_add(body, "options", options.data);
}

static struct secret *exchange_body(const struct sts_exchange *exchange)
{
	AUTO_BUF struct buf body;

	buf_init_sensitive(&body, MAX_BODY_BYTES);
	form_add(&body, "grant_type", TOKEN_EXCHANGE);
	form_add(&body, "audience", exchange->audience);
	form_add(&body, "scope", exchange->scope);
	form_add(&body, "requested_token_type", ACCESS_TOKEN);
	form_add(&body, "subject_token", secret_bytes(exchange->subject_token));
	form_add(&body, "subject_token_type", exchange->subject_token_type);
	if (exchange->user_project)
		add_options(&body, exchange->user_project);
	return secret_take_buf(&body);
}

/* The word for what is wrong with the answer, or NULL and the token is filled. */
static const char *read_body(const struct http_answer *answer, struct sts_token *token)
{
	json_auto_t *body = json_read_object(answer->body, answer->body_len);
	if (!body)
		return "is not one JSON object";
	const json_t *const type = json_object_get(body, "token_type");
	const char *const type_name = json_string_value(type);
	if (type && (!type_name || strcasecmp(type_name, "Bearer") != 0))
		return "is of another token_type than Bearer";
	token->life_s = access_token_life_s(json_object_get(body, "expires_in"));
	if (!token->life_s)
		return "has no expires_in above 0";
	token->access_token = access_token_from_json(json_object_get(body, "access_token"));
	return token->access_token ? NULL : "has no access_token that can be used";
}

static int read_token(const struct http_answer *answer, struct sts_token *token,
		      struct failure *failure)
{
	if (answer->failure != HTTP_FAILURE_NONE || answer->status != 200) {
		failure_from_answer(failure, FAILURE_STEP_EXCHANGE, answer);
		return -1;
	}
	const char *const wrong = read_body(answer, token);
	if (!wrong)
		return 0;
	failure_set(failure, FAILURE_STEP_EXCHANGE, FAILURE_TRANSIENT, "bad_answer",
		    "the answer of the token service %s", wrong);
	failure->http_status = answer->status;
	return -1;
}

static void answered(void *ctx, const struct http_answer *answer)
{
	struct sts_call *const call = ctx;
	sts_done *const done = call->done;
	void *const done_ctx = call->ctx;
	struct sts_token token = {0};
	struct failure failure;

	const int result = read_token(answer, &token, &failure);
	/* Before the callback: the handle is dead in it, and it may start the next call. */
	free(call);
	if (result)
		done(done_ctx, NULL, &failure);
	else
		done(done_ctx, &token, NULL);
	secret_unref(token.access_token);
}

struct sts_call *sts_exchange_start(struct http_client *client, const struct sts_exchange *exchange,
				    sts_done *done, void *ctx)
{
	struct sts_call *const call = xcalloc(1, sizeof(*call));

	call->done = done;
	call->ctx = ctx;
	AUTO_FREE char *url = xasprintf("%s/v1/token", exchange->endpoint);
	AUTO_SECRET struct secret *body = exchange_body(exchange);
	const struct http_client_request request = {
		.method = "POST",
		.url = url,
		.content_type = "application/x-www-form-urlencoded",
		.body = body,
		.user = exchange->client_id,
		.password = exchange->client_secret,
	};
	call->http = http_client_start(client, &request, answered, call);
	return call;
}

void sts_call_cancel(struct sts_call *call)
{
	if (!call)
		return;
	http_call_cancel(call->http);
	free(call);
}
