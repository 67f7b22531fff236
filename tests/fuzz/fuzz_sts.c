/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An answer of the token service: whatever it is, a token that can go into a header and has a life, or a
 * failure without a word of the answer's text. The first line of an input is the HTTP status.
 */
#include "broker/base/compiler.h"
#include "broker/base/parse.h"
#include "broker/base/secret.h"
#include "broker/google/access_token.h"
#include "broker/google/sts.h"
#include "broker/net/http_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LIFE_S 86400

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The one call that is under way. */
static struct {
	http_client_done *done;
	void *ctx;
	unsigned results;
	long status;
} wire;

static void check(bool holds)
{
	if (!holds)
		abort();
}

struct http_call *http_client_start(struct http_client *client,
				    const struct http_client_request *request,
				    http_client_done *done, void *ctx)
{
	(void)client;
	check(!strcmp(request->url, "https://sts.googleapis.com/v1/token"));
	wire.done = done;
	wire.ctx = ctx;
	return NULL;
}

void http_call_cancel(struct http_call *call)
{
	(void)call;
}

static void check_token(const struct sts_token *token)
{
	check(wire.status == 200);
	check(token->life_s > 0 && token->life_s <= MAX_LIFE_S);
	check(secret_len(token->access_token) > 0 &&
	      secret_len(token->access_token) <= ACCESS_TOKEN_MAX_BYTES);
	check(!strpbrk(secret_bytes(token->access_token), " \t\r\n\"\\"));
}

static void check_failure(const struct failure *failure)
{
	check(failure->step == FAILURE_STEP_EXCHANGE && failure->http_status == wire.status);
	check(text_is_of(failure->reason, "_.-") && failure->detail[0]);
	check(!strpbrk(failure->detail, "{}\r\n\""));
	check((failure->class == FAILURE_TRANSIENT) == (failure->public == FAILURE_TEMPORARY));
	/* A server with a fault is not believed about anything. */
	check(wire.status < 500 || failure->class == FAILURE_TRANSIENT);
}

static void on_done(void *ctx, const struct sts_token *token, const struct failure *failure)
{
	(void)ctx;
	wire.results++;
	check(!token != !failure);
	if (token)
		check_token(token);
	else
		check_failure(failure);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *const newline = size ? memchr(data, '\n', size) : NULL;
	char line[8] = "";
	uint64_t status;

	if (!newline || (size_t)(newline - data) >= sizeof(line))
		return 0;
	memcpy(line, data, (size_t)(newline - data));
	if (parse_uint(line, 100, 999, &status))
		return 0;
	/* Ended by a NUL, as the client's are. */
	const size_t len = size - (size_t)(newline + 1 - data);
	char *const body = malloc(len + 1);
	check(body != NULL);
	memcpy(body, newline + 1, len);
	body[len] = '\0';
	AUTO_SECRET struct secret *subject = secret_new("subject", strlen("subject"));
	wire.results = 0;
	wire.status = (long)status;
	(void)!sts_exchange_start(NULL,
				  &(struct sts_exchange){
					  .endpoint = "https://sts.googleapis.com",
					  .audience = "//iam.googleapis.com/a",
					  .scope = "s",
					  .subject_token_type = "t",
					  .subject_token = subject,
				  },
				  on_done, NULL);
	wire.done(wire.ctx, &(struct http_answer){
				    .failure_text = "",
				    .status = wire.status,
				    .body = body,
				    .body_len = len,
				    .content_type = "",
				    .date_s = -1,
				    .retry_after_s = -1,
			    });
	free(body);
	check(wire.results == 1);
	return 0;
}
