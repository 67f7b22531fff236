/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/google/iam_credentials.h"

#include "broker/base/alloc.h"
#include "broker/base/clock.h"
#include "broker/base/json.h"
#include "broker/base/parse.h"
#include "broker/base/secret.h"
#include "broker/base/strv.h"
#include "broker/google/access_token.h"
#include "broker/google/rfc3339.h"
#include "broker/net/http_client.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct iam_call {
	struct http_call *http;
	const struct clock *clock;
	int64_t lifetime_ms;
	enum failure_step step;
	iam_done *done;
	void *ctx;
};

static json_t *strings(const struct strv *list, const char *prefix)
{
	json_auto_t *array = json_array();

	for (size_t i = 0; i < list->count; i++)
		if (json_array_append_new(array, json_sprintf("%s%s", prefix, list->items[i])))
			return NULL;
	return TAKE(array);
}

/* NULL where something is not UTF-8: what cannot be asked for exactly is not asked for. */
static char *request_json(const struct iam_token_request *request)
{
	char lifetime[32];
	json_auto_t *root = json_object();

	(void)snprintf(lifetime, sizeof(lifetime), "%" PRId64 "s", request->lifetime_s);
	if (json_object_set_new(root, "scope", strings(request->scopes, "")))
		return NULL;
	if (request->delegates->count &&
	    json_object_set_new(root, "delegates",
				strings(request->delegates, "projects/-/serviceAccounts/")))
		return NULL;
	if (json_object_set_new(root, "lifetime", json_string(lifetime)))
		return NULL;
	return json_dumps(root, JSON_COMPACT);
}

static bool accounts_are_emails(const struct iam_token_request *request)
{
	for (size_t i = 0; i < request->delegates->count; i++)
		if (!text_is_email(request->delegates->items[i]))
			return false;
	return text_is_email(request->service_account);
}

/* The word for what is wrong with the answer, or NULL and the token is filled. */
static const char *read_body(const struct iam_call *call, const struct http_answer *answer,
			     struct iam_token *token)
{
	int64_t expires_ms;

	json_auto_t *body = json_read_object(answer->body, answer->body_len);
	if (!body)
		return "is not one JSON object";
	const char *const expire_time = json_get_string(body, "expireTime");
	if (!expire_time || rfc3339_parse_ms(expire_time, &expires_ms))
		return "has no expireTime that can be read";
	const int64_t wall_ms = clock_wall_ms(call->clock);
	const int64_t now_ms = answer->date_s >= 0 ? answer->date_s * 1000 : wall_ms;
	/* What is served says whole seconds. */
	if (expires_ms < now_ms + 1000)
		return answer->date_s >= 0 ?
			       "has an expireTime that has passed" :
			       "has an expireTime that has passed, by the clock of this host";
	token->token = access_token_from_json(json_object_get(body, "accessToken"));
	if (!token->token)
		return "has no accessToken that can be used";
	const int64_t life_ms = expires_ms - now_ms;
	token->life_ms = life_ms < call->lifetime_ms ? life_ms : call->lifetime_ms;
	token->skew_s = answer->date_s >= 0 ? wall_ms / 1000 - answer->date_s : 0;
	return NULL;
}

static int read_token(const struct iam_call *call, const struct http_answer *answer,
		      struct iam_token *token, struct failure *failure)
{
	if (answer->failure != HTTP_FAILURE_NONE || answer->status != 200) {
		failure_from_answer(failure, call->step, answer);
		return -1;
	}
	const char *const wrong = read_body(call, answer, token);
	if (!wrong)
		return 0;
	failure_set(failure, call->step, FAILURE_TRANSIENT, "bad_answer",
		    "the answer to generateAccessToken %s", wrong);
	failure->http_status = answer->status;
	return -1;
}

static void answered(void *ctx, const struct http_answer *answer)
{
	struct iam_call *const call = ctx;
	iam_done *const done = call->done;
	void *const done_ctx = call->ctx;
	struct iam_token token = {0};
	struct failure failure;

	const int result = read_token(call, answer, &token, &failure);
	/* Before the callback: the handle is dead in it, and it may start the next call. */
	free(call);
	if (result)
		done(done_ctx, NULL, &failure);
	else
		done(done_ctx, &token, NULL);
	secret_unref(token.token);
}

struct iam_call *iam_generate_access_token(struct http_client *client, const struct clock *clock,
					   const struct iam_token_request *request, iam_done *done,
					   void *ctx)
{
	/* The address becomes part of a URL; with "/" or "?" in it, of another one than is meant. */
	if (!accounts_are_emails(request))
		return NULL;
	AUTO_FREE char *json = request_json(request);
	if (!json)
		return NULL;
	struct iam_call *const call = xcalloc(1, sizeof(*call));
	call->clock = clock;
	call->done = done;
	call->ctx = ctx;
	call->lifetime_ms = request->lifetime_s * 1000;
	call->step = request->of_source ? FAILURE_STEP_IMPERSONATE : FAILURE_STEP_MINT;
	AUTO_FREE char *url = xasprintf("%s/v1/projects/-/serviceAccounts/%s:generateAccessToken",
					request->endpoint, request->service_account);
	AUTO_SECRET struct secret *body = secret_new(json, strlen(json));
	const struct http_client_request http = {
		.method = "POST",
		.url = url,
		.content_type = "application/json",
		.body = body,
		.bearer = request->source_token,
		.quota_project = request->quota_project,
	};
	call->http = http_client_start(client, &http, answered, call);
	return call;
}

void iam_call_cancel(struct iam_call *call)
{
	if (!call)
		return;
	http_call_cancel(call->http);
	free(call);
}
