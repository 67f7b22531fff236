/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/net/http_client.h"

#include "broker/base/alloc.h"
#include "broker/base/err.h"
#include "broker/base/secret.h"
#include "broker/net/http_call.h"
#include "broker/net/loop.h"

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

/* Frees a header list that may hold a bearer token. */
static void headers_free(struct curl_slist *headers)
{
	for (struct curl_slist *h = headers; h; h = h->next)
		explicit_bzero(h->data, strlen(h->data));
	curl_slist_free_all(headers);
}

static void call_free(struct http_call *call)
{
	list_remove(&call->link);
	if (call->easy) {
		(void)curl_multi_remove_handle(call->client->multi, call->easy);
		curl_easy_cleanup(call->easy);
	}
	headers_free(call->headers);
	secret_unref(call->body);
	free(call->answer_field);
	buf_deinit(&call->answer);
	free(call);
}

static enum http_failure failure_of(const struct http_call *call, CURLcode code)
{
	switch ((int)code) {
	case CURLE_OK:
		return HTTP_FAILURE_NONE;
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
		return HTTP_FAILURE_RESOLVE;
	case CURLE_COULDNT_CONNECT:
		return HTTP_FAILURE_CONNECT;
	case CURLE_SSL_CONNECT_ERROR:
		return HTTP_FAILURE_TLS;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
		return HTTP_FAILURE_CERTIFICATE;
	case CURLE_OPERATION_TIMEDOUT:
		return HTTP_FAILURE_TIMEOUT;
	case CURLE_FILESIZE_EXCEEDED:
		return HTTP_FAILURE_TOO_LARGE;
	case CURLE_WRITE_ERROR:
		return call->too_large ? HTTP_FAILURE_TOO_LARGE : HTTP_FAILURE_BROKEN;
	case CURLE_RECV_ERROR:
	case CURLE_SEND_ERROR:
	case CURLE_SEND_FAIL_REWIND:
	case CURLE_PARTIAL_FILE:
	case CURLE_GOT_NOTHING:
	case CURLE_HTTP2:
	case CURLE_HTTP2_STREAM:
		return HTTP_FAILURE_BROKEN;
	default:
		return HTTP_FAILURE_OTHER;
	}
}

/* The value of a header that is there once; NULL otherwise. Borrowed. */
static const char *only_header(const struct http_call *call, const char *name)
{
	struct curl_header *header;

	if (!name || curl_easy_header(call->easy, name, 0, CURLH_HEADER, -1, &header) ||
	    header->amount != 1)
		return NULL;
	return header->value;
}

static void report(struct http_call *call, CURLcode code)
{
	struct http_answer answer = {
		.failure = failure_of(call, code),
		.failure_text = "",
		.body = call->answer.data ? call->answer.data : "",
		.body_len = call->answer.len,
		.content_type = "",
		.date_s = -1,
		.retry_after_s = -1,
	};
	struct curl_header *date;
	curl_off_t retry_after_s = 0;
	char *content_type = NULL;

	if (answer.failure != HTTP_FAILURE_NONE)
		answer.failure_text = call->error[0] ? call->error : curl_easy_strerror(code);
	(void)curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &answer.status);
	(void)curl_easy_getinfo(call->easy, CURLINFO_CONTENT_TYPE, &content_type);
	if (content_type)
		answer.content_type = content_type;
	if (!curl_easy_getinfo(call->easy, CURLINFO_RETRY_AFTER, &retry_after_s) &&
	    retry_after_s > 0)
		answer.retry_after_s = retry_after_s;
	if (!curl_easy_header(call->easy, "Date", 0, CURLH_HEADER, -1, &date))
		answer.date_s = curl_getdate(date->value, NULL);
	answer.field = only_header(call, call->answer_field);
	call->done(call->ctx, &answer);
}

static bool is_streamed(const struct http_call *call)
{
	long status = 0;

	(void)curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
	return call->line && status >= 200 && status < 300;
}

/* Takes the first whole line out of what has come. False where there is none. */
static bool take_line(struct http_call *call, struct buf *line)
{
	struct buf *const answer = &call->answer;
	const char *const end = answer->len > 0 ? memchr(answer->data, '\n', answer->len) : NULL;

	if (!end || !is_streamed(call))
		return false;
	const size_t len = (size_t)(end - answer->data);
	buf_init_sensitive(line, len + 1);
	buf_add_bytes(line, answer->data, len);
	answer->len -= len + 1;
	memmove(answer->data, end + 1, answer->len + 1);
	return true;
}

/* A line's receiver may start and cancel calls, so the walk begins again after each. */
static bool report_line(struct http_client *client)
{
	list_for_each(link, &client->calls) {
		struct http_call *const call = CONTAINER_OF(link, struct http_call, link);
		AUTO_BUF struct buf line = {0};
		if (!take_line(call, &line))
			continue;
		call->line(call->ctx, line.data ? line.data : "", line.len);
		return true;
	}
	return false;
}

/* To be reported later: libcurl may not be called from its own callbacks. */
static void lose(struct http_call *call, const char *why)
{
	call->lost = true;
	(void)snprintf(call->error, sizeof(call->error), "%s", why);
	loop_defer_ready(call->client->finish);
}

/* One in a turn of the loop: its callback may start another call that is lost. */
static void report_lost(struct http_client *client)
{
	list_for_each(link, &client->calls) {
		struct http_call *const call = CONTAINER_OF(link, struct http_call, link);
		if (!call->lost)
			continue;
		list_remove(&call->link);
		loop_defer_ready(client->finish);
		report(call, CURLE_ABORTED_BY_CALLBACK);
		call_free(call);
		return;
	}
}

/* Ended transfers are freed only after their callback, which may start and cancel others. */
static void on_finish(void *ctx)
{
	struct http_client *const client = ctx;
	CURLMsg *message;
	int left;

	while (report_line(client))
		continue;

	while ((message = curl_multi_info_read(client->multi, &left))) {
		struct http_call *call = NULL;
		if (message->msg != CURLMSG_DONE)
			continue;
		const CURLcode code = message->data.result;
		(void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &call);
		list_remove(&call->link);
		report(call, code);
		call_free(call);
	}
	report_lost(client);
}

static void act(struct http_client *client, curl_socket_t fd, int events)
{
	int running;

	(void)curl_multi_socket_action(client->multi, fd, events, &running);
	loop_defer_ready(client->finish);
}

static void on_socket_ready(void *ctx, int fd, uint32_t events)
{
	const int action = (events & EPOLLIN ? CURL_CSELECT_IN : 0) |
			   (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
			   (events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);

	act(ctx, fd, action);
}

/* CURLMOPT_SOCKETFUNCTION: one loop source a socket. */
static int on_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *socket_ctx)
{
	static const uint32_t events[] = {
		[CURL_POLL_NONE] = 0,
		[CURL_POLL_IN] = EPOLLIN,
		[CURL_POLL_OUT] = EPOLLOUT,
		[CURL_POLL_INOUT] = EPOLLIN | EPOLLOUT,
	};
	struct http_client *const client = ctx;
	struct loop_source *source = socket_ctx;
	struct http_call *call = NULL;

	if (what == CURL_POLL_REMOVE) {
		loop_source_free(source);
		(void)curl_multi_assign(client->multi, fd, NULL);
		return 0;
	}
	if (source) {
		loop_io_set_events(source, events[what]);
		return 0;
	}
	source = loop_add_io(client->loop, fd, events[what], LOOP_PRIORITY_NORMAL, on_socket_ready,
			     client);
	if (source) {
		(void)curl_multi_assign(client->multi, fd, source);
		return 0;
	}
	/* To fail here would have libcurl take no call any more while one of those it has is left. */
	(void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, &call);
	if (call)
		lose(call, "its socket cannot be watched");
	return 0;
}

static void on_timeout(struct timer *timer)
{
	act(CONTAINER_OF(timer, struct http_client, timer), CURL_SOCKET_TIMEOUT, 0);
}

/* CURLMOPT_TIMERFUNCTION; libcurl may not be called from here. */
static int on_timer_wanted(CURLM *multi, long timeout_ms, void *ctx)
{
	struct http_client *const client = ctx;

	(void)multi;
	if (timeout_ms < 0)
		timer_stop(loop_timers(client->loop), &client->timer);
	else
		timer_set_after(loop_timers(client->loop), &client->timer, timeout_ms, on_timeout);
	return 0;
}

int http_client_new(struct loop *loop, const struct http_client_options *options,
		    struct http_client **out, struct err *err)
{
	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return err_set(err, ERR_SYSTEM, "libcurl does not start");
	struct http_client *const client = xcalloc(1, sizeof(*client));
	client->loop = loop;
	list_init(&client->calls);
	client->multi = curl_multi_init();
	if (!client->multi)
		abort();
	client->finish = loop_add_defer(loop, LOOP_PRIORITY_NORMAL, on_finish, client);
	client->ca_file = options->ca_file ? xstrdup(options->ca_file) : NULL;
	client->proxy = options->proxy ? xstrdup(options->proxy) : NULL;
	client->no_proxy = options->no_proxy ? xstrdup(options->no_proxy) : NULL;
	client->user_agent = xstrdup(options->user_agent);
	(void)curl_multi_setopt(client->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	(void)curl_multi_setopt(client->multi, CURLMOPT_SOCKETDATA, client);
	(void)curl_multi_setopt(client->multi, CURLMOPT_TIMERFUNCTION, on_timer_wanted);
	(void)curl_multi_setopt(client->multi, CURLMOPT_TIMERDATA, client);
	(void)curl_multi_setopt(client->multi, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
	*out = client;
	return 0;
}

void http_client_free(struct http_client *client)
{
	if (!client)
		return;
	(void)curl_multi_cleanup(client->multi);
	timer_stop(loop_timers(client->loop), &client->timer);
	loop_source_free(client->finish);
	free(client->ca_file);
	free(client->proxy);
	free(client->no_proxy);
	free(client->user_agent);
	free(client);
	curl_global_cleanup();
}

void http_client_set_ca_file(struct http_client *client, const char *ca_file)
{
	free(client->ca_file);
	client->ca_file = ca_file ? xstrdup(ca_file) : NULL;
}

struct http_call *http_client_start(struct http_client *client,
				    const struct http_client_request *request,
				    http_client_done *done, void *ctx)
{
	struct http_call *const call = xcalloc(1, sizeof(*call));
	CURL *const easy = curl_easy_init();

	if (!easy)
		abort();
	call->client = client;
	call->easy = easy;
	call->done = done;
	call->ctx = ctx;
	call->line = request->line;
	http_call_prepare(call, request);
	list_append(&client->calls, &call->link);
	/* Only sets a timer of 0: the transfer starts from the loop. */
	const CURLMcode added = curl_multi_add_handle(client->multi, easy);
	if (added)
		lose(call, curl_multi_strerror(added));
	return call;
}

void http_call_cancel(struct http_call *call)
{
	if (call)
		call_free(call);
}
