/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/google/oauth2.h"

#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/base/clock.h"
#include "broker/base/json.h"
#include "broker/base/secret.h"
#include "broker/google/access_token.h"
#include "broker/google/form.h"
#include "broker/net/http_client.h"

#include <string.h>
#include <strings.h>

/* Three fields of a credential file of 64 KiB at most, each byte of which may take three. */
#define MAX_BODY_BYTES ((size_t)256 << 10)
#define MAX_REFRESH_TOKEN_BYTES 8192

struct oauth2_call {
	struct http_call *http;
	const struct clock *clock;
	struct secret *refresh_token; /* the one that was sent */
	oauth2_done *done;
	void *ctx;
};

static void call_free(struct oauth2_call *call)
{
	secret_unref(call->refresh_token);
	free(call);
}

static struct secret *refresh_body(const struct oauth2_refresh *refresh)
{
	AUTO_BUF struct buf body;

	buf_init_sensitive(&body, MAX_BODY_BYTES);
	form_add(&body, "grant_type", "refresh_token");
	form_add(&body, "client_id", refresh->client_id);
	form_add(&body, "client_secret", secret_bytes(refresh->client_secret));
	form_add(&body, "refresh_token", secret_bytes(refresh->refresh_token));
	return secret_take_buf(&body);
}

static struct secret *read_rotated(const struct oauth2_call *call, const json_t *answer)
{
	const char *const text = json_get_string(answer, "refresh_token");

	if (!text || !*text || strlen(text) > MAX_REFRESH_TOKEN_BYTES)
		return NULL;
	AUTO_SECRET struct secret *rotated = secret_new(text, strlen(text));
	return secret_equal(rotated, call->refresh_token) ? NULL : TAKE(rotated);
}

static int read_token(const struct oauth2_call *call, const struct http_answer *answer,
		      struct oauth2_token *token, struct failure *failure)
{
	if (answer->failure != HTTP_FAILURE_NONE || answer->status != 200) {
		failure_from_answer(failure, FAILURE_STEP_SOURCE, answer);
		return -1;
	}
	json_auto_t *body = json_read_object(answer->body, answer->body_len);
	const json_t *const type = json_object_get(body, "token_type");
	const char *const type_name = json_string_value(type);
	if (!type || (type_name && !strcasecmp(type_name, "Bearer")))
		token->access_token = access_token_from_json(json_object_get(body, "access_token"));
	if (!token->access_token) {
		failure_set(failure, FAILURE_STEP_SOURCE, FAILURE_TRANSIENT, "bad_answer",
			    "the OAuth2 endpoint answered 200 without a usable access_token");
		failure->http_status = answer->status;
		return -1;
	}
	token->refresh_token = read_rotated(call, body);
	token->life_s = access_token_life_s(json_object_get(body, "expires_in"));
	if (answer->date_s >= 0)
		token->skew_s = clock_wall_ms(call->clock) / 1000 - answer->date_s;
	return 0;
}

static void answered(void *ctx, const struct http_answer *answer)
{
	struct oauth2_call *const call = ctx;
	oauth2_done *const done = call->done;
	void *const done_ctx = call->ctx;
	struct oauth2_token token = {0};
	struct failure failure;

	const int result = read_token(call, answer, &token, &failure);
	/* Before the callback: the handle is dead in it, and it may start the next call. */
	call_free(call);
	if (result)
		done(done_ctx, NULL, &failure);
	else
		done(done_ctx, &token, NULL);
	secret_unref(token.access_token);
	secret_unref(token.refresh_token);
}

struct oauth2_call *oauth2_refresh_start(struct http_client *client, const struct clock *clock,
					 const struct oauth2_refresh *refresh, oauth2_done *done,
					 void *ctx)
{
	struct oauth2_call *const call = xcalloc(1, sizeof(*call));
	const struct secret *const refresh_token = refresh->refresh_token;

	call->clock = clock;
	call->done = done;
	call->ctx = ctx;
	AUTO_FREE char *url = xasprintf("%s/token", refresh->endpoint);
	AUTO_SECRET struct secret *body = refresh_body(refresh);
	call->refresh_token = secret_new(secret_bytes(refresh_token), secret_len(refresh_token));
	const struct http_client_request request = {
		.method = "POST",
		.url = url,
		.content_type = "application/x-www-form-urlencoded",
		.body = body,
	};
	call->http = http_client_start(client, &request, answered, call);
	return call;
}

void oauth2_call_cancel(struct oauth2_call *call)
{
	if (!call)
		return;
	http_call_cancel(call->http);
	call_free(call);
}
