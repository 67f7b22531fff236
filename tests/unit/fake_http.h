/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wire, as the test wants it: takes the place of broker/net/http_client.c in a test that includes
 * this in its one source file. Requests are kept for the test to look at and to answer; nothing comes
 * back unless the test says so.
 */
#pragma once

#include "broker/base/alloc.h"
#include "broker/base/secret.h"
#include "broker/net/http_client.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#define FAKE_HTTP_MAX_CALLS 8

struct http_call {
	char *method;
	char *url;
	char *content_type;
	char *body;
	char *bearer;
	char *quota_project;
	char *basic;  /* "user:password"; NULL: none */
	char *fields; /* "Name: value" lines */
	char *answer_field;
	http_client_done *done;
	void *ctx;
};

static struct {
	struct http_call *open[FAKE_HTTP_MAX_CALLS]; /* oldest first */
	size_t count;
	size_t started; /* ever */
	size_t cancelled;
} fake_http;

static char *fake_http_copy(const char *s)
{
	return s ? xstrdup(s) : NULL;
}

struct http_call *http_client_start(struct http_client *client,
				    const struct http_client_request *request,
				    http_client_done *done, void *ctx)
{
	(void)client;
	assert_true(fake_http.count < FAKE_HTTP_MAX_CALLS);
	struct http_call *const call = xcalloc(1, sizeof(*call));
	*call = (struct http_call){
		.method = fake_http_copy(request->method),
		.url = fake_http_copy(request->url),
		.content_type = fake_http_copy(request->content_type),
		.body = request->body ? xstrdup(secret_bytes(request->body)) : NULL,
		.bearer = request->bearer ? xstrdup(secret_bytes(request->bearer)) : NULL,
		.quota_project = fake_http_copy(request->quota_project),
		.basic = request->user ? xasprintf("%s:%s", request->user,
						   secret_bytes(request->password)) :
					 NULL,
		.fields = xstrdup(""),
		.answer_field = fake_http_copy(request->answer_field),
		.done = done,
		.ctx = ctx,
	};
	for (size_t i = 0; i < request->field_count; i++) {
		char *const longer = xasprintf("%s%s: %s\n", call->fields, request->fields[i].name,
					       request->fields[i].value);
		free(call->fields);
		call->fields = longer;
	}
	fake_http.open[fake_http.count++] = call;
	fake_http.started++;
	return call;
}

static void fake_http_end(struct http_call *call)
{
	for (size_t i = 0; i < fake_http.count; i++) {
		if (fake_http.open[i] != call)
			continue;
		memmove(&fake_http.open[i], &fake_http.open[i + 1],
			(--fake_http.count - i) * sizeof(struct http_call *));
		free(call->method);
		free(call->url);
		free(call->content_type);
		free(call->body);
		free(call->bearer);
		free(call->quota_project);
		free(call->basic);
		free(call->fields);
		free(call->answer_field);
		free(call);
		return;
	}
	fail_msg("a call that is not under way was ended");
}

void http_call_cancel(struct http_call *call)
{
	if (!call)
		return;
	fake_http_end(call);
	fake_http.cancelled++;
}

/* The oldest request that has no answer. */
static inline const struct http_call *fake_http_request(void)
{
	assert_true(fake_http.count > 0);
	return fake_http.open[0];
}

static inline void fake_http_reply(const struct http_answer *answer)
{
	assert_true(fake_http.count > 0);
	http_client_done *const done = fake_http.open[0]->done;
	void *const ctx = fake_http.open[0]->ctx;

	fake_http_end(fake_http.open[0]);
	done(ctx, answer);
}

/* The same with the header that the request wants to see. */
static inline void fake_http_answer_with(long status, const char *body, const char *field)
{
	fake_http_reply(&(struct http_answer){
		.failure_text = "",
		.status = status,
		.body = body,
		.body_len = strlen(body),
		.content_type = "application/text",
		.date_s = -1,
		.retry_after_s = -1,
		.field = field,
	});
}

/* An answer to it; date_s -1: without a Date. */
static inline void fake_http_answer(long status, const char *body, int64_t date_s)
{
	fake_http_reply(&(struct http_answer){
		.failure_text = "",
		.status = status,
		.body = body,
		.body_len = strlen(body),
		.content_type = "application/json; charset=UTF-8",
		.date_s = date_s,
		.retry_after_s = -1,
	});
}

/* No answer to it. */
static inline void fake_http_fail(enum http_failure failure)
{
	fake_http_reply(&(struct http_answer){
		.failure = failure,
		.failure_text = "words of libcurl",
		.body = "",
		.content_type = "",
		.date_s = -1,
		.retry_after_s = -1,
	});
}

/* To be called before each test. */
static inline void fake_http_reset(void)
{
	assert_int_equal(fake_http.count, 0);
	fake_http.started = 0;
	fake_http.cancelled = 0;
}
