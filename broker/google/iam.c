/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/google/iam.h"

#include "broker/base/alloc.h"
#include "broker/base/json.h"
#include "broker/base/parse.h"
#include "broker/base/secret.h"
#include "broker/net/http_client.h"

#include <string.h>

#define PERMISSION "iam.serviceAccounts.getAccessToken"

struct iam_grant_call {
	struct http_call *http;
	iam_grant_done *done;
	void *ctx;
};

/* The answer names those of the permissions asked for that are held; none of them: no list at all. */
static bool is_held(const json_t *body)
{
	const json_t *const held = json_object_get(body, "permissions");
	const json_t *item;
	size_t i;

	json_array_foreach(held, i, item) {
		const char *const name = json_string_value(item);
		if (name && !strcmp(name, PERMISSION))
			return true;
	}
	return false;
}

static enum iam_grant read_answer(const struct http_answer *answer, struct failure *failure)
{
	if (answer->failure != HTTP_FAILURE_NONE || answer->status != 200) {
		failure_from_answer(failure, FAILURE_STEP_MINT, answer);
		/* No such account is an answer; anything else only says that it could not be asked. */
		return answer->failure == HTTP_FAILURE_NONE && answer->status == 404 ?
			       IAM_GRANT_NO :
			       IAM_GRANT_UNKNOWN;
	}
	json_auto_t *body = json_read_object(answer->body, answer->body_len);
	if (body)
		return is_held(body) ? IAM_GRANT_YES : IAM_GRANT_NO;
	failure_set(failure, FAILURE_STEP_MINT, FAILURE_TRANSIENT, "bad_answer",
		    "the answer to testIamPermissions is not one JSON object");
	return IAM_GRANT_UNKNOWN;
}

static void answered(void *ctx, const struct http_answer *answer)
{
	struct iam_grant_call *const call = ctx;
	iam_grant_done *const done = call->done;
	void *const done_ctx = call->ctx;
	struct failure failure = {0};

	const enum iam_grant grant = read_answer(answer, &failure);
	/* Before the callback: the handle is dead in it. */
	free(call);
	done(done_ctx, grant, failure.reason[0] ? &failure : NULL);
}

struct iam_grant_call *iam_test_grant(struct http_client *client,
				      const struct iam_grant_request *request, iam_grant_done *done,
				      void *ctx)
{
	static const char body[] = "{\"permissions\":[\"" PERMISSION "\"]}";

	if (!text_is_email(request->account))
		return NULL;
	struct iam_grant_call *const call = xcalloc(1, sizeof(*call));
	call->done = done;
	call->ctx = ctx;
	AUTO_FREE char *url = xasprintf("%s/v1/projects/-/serviceAccounts/%s:testIamPermissions",
					request->endpoint, request->account);
	AUTO_SECRET struct secret *bytes = secret_new(body, sizeof(body) - 1);
	const struct http_client_request http = {
		.method = "POST",
		.url = url,
		.content_type = "application/json",
		.body = bytes,
		.bearer = request->source_token,
		.quota_project = request->quota_project,
	};
	call->http = http_client_start(client, &http, answered, call);
	return call;
}

void iam_grant_call_cancel(struct iam_grant_call *call)
{
	if (!call)
		return;
	http_call_cancel(call->http);
	free(call);
}
