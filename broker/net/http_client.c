/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/net/http_client.h"

#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/base/err.h"
#include "broker/base/list.h"
#include "broker/base/secret.h"
#include "broker/net/loop.h"

#include <curl/curl.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>

struct http_client {
	struct loop *loop;
	CURLM *multi;
	struct timer timer;	    /* what libcurl waits for */
	struct loop_source *finish; /* reports ended transfers outside libcurl's callbacks */
	struct list calls;
	char *ca_file;
	char *proxy;
	char *no_proxy;
	char *user_agent;
};

struct http_call {
	struct list link;
	struct http_client *client;
	CURL *easy;
	struct curl_slist *headers;
	struct secret *body;
	struct buf answer;
	char *answer_field; /* the header that is wanted, or NULL */
	bool too_large;
	http_client_line *line;
	char error[CURL_ERROR_SIZE];
	http_client_done *done;
	void *ctx;
};

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

	(void)easy;
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
	if (!source)
		return -1;
	(void)curl_multi_assign(client->multi, fd, source);
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

/* CURLOPT_WRITEFUNCTION: counts, since an announced length is not to be trusted. */
static size_t on_body(char *data, size_t size, size_t count, void *ctx)
{
	struct http_call *const call = ctx;

	if (buf_append(&call->answer, data, size * count)) {
		call->too_large = true;
		return 0;
	}
	return size * count;
}

static void add_header(struct http_call *call, const char *header)
{
	struct curl_slist *const longer = curl_slist_append(call->headers, header);

	if (!longer)
		abort();
	call->headers = longer;
}

static void set_headers(struct http_call *call, const struct http_client_request *request)
{
	AUTO_BUF struct buf line;

	buf_init_sensitive(&line, HTTP_CLIENT_MAX_ANSWER_BYTES + 64);
	if (request->bearer) {
		buf_add(&line, "Authorization: Bearer ");
		buf_add_bytes(&line, secret_bytes(request->bearer), secret_len(request->bearer));
		add_header(call, line.data);
	}
	buf_reset(&line);
	if (request->content_type) {
		buf_addf(&line, "Content-Type: %s", request->content_type);
		add_header(call, line.data);
	}
	buf_reset(&line);
	if (request->quota_project) {
		buf_addf(&line, "x-goog-user-project: %s", request->quota_project);
		add_header(call, line.data);
	}
	for (size_t i = 0; i < request->field_count; i++) {
		buf_reset(&line);
		buf_addf(&line, "%s: %s", request->fields[i].name, request->fields[i].value);
		add_header(call, line.data);
	}
	add_header(call, "Accept: application/json");
	add_header(call, "Expect:"); /* no 100-continue round trip */
	(void)curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, call->headers);
}

static bool is_https(const char *url)
{
	return !strncasecmp(url, "https://", strlen("https://"));
}

/* True for the hosts that a proxy never sees: this machine, and the metadata addresses. */
static bool is_local(const char *url)
{
	static const char *const hosts[] = {"localhost",
					    "127.",
					    "[::1]",
					    "169.254.169.254",
					    "[fd00:ec2::254]",
					    "[fd20:ce::254]",
					    "metadata.google.internal"};
	const char *const host = strstr(url, "://");

	for (size_t i = 0; host && i < ARRAY_LEN(hosts); i++)
		if (!strncasecmp(host + 3, hosts[i], strlen(hosts[i])))
			return true;
	return false;
}

/*
 * A bundle of ours is the only one. Else a directory of hashed certificates serves better than the
 * system's bundle: libcurl would parse all of that within one turn of the loop.
 */
static void set_ca(CURL *easy, const struct http_client *client)
{
	if (client->ca_file) {
		(void)curl_easy_setopt(easy, CURLOPT_CAINFO, client->ca_file);
		(void)curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
	} else if (curl_version_info(CURLVERSION_NOW)->capath) {
		(void)curl_easy_setopt(easy, CURLOPT_CAINFO, NULL);
	}
}

/* As libcurl counts: 0 is never. */
static long timeout_ms(const struct http_client_request *request)
{
	if (request->timeout_ms == HTTP_CLIENT_NO_TIMEOUT)
		return 0;
	return request->timeout_ms ? (long)request->timeout_ms : HTTP_CLIENT_CALL_TIMEOUT_MS;
}

/* CURLOPT_OPENSOCKETFUNCTION: libcurl's own sockets would survive an exec. */
static curl_socket_t open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *address)
{
	(void)ctx;
	(void)purpose;
	return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static void set_transport(struct http_call *call, const struct http_client_request *request)
{
	const struct http_client *const client = call->client;
	CURL *const easy = call->easy;
	const bool proxied = client->proxy && is_https(request->url) && !is_local(request->url);

	(void)curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, request->unix_socket);
	(void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	(void)curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	/* "" keeps libcurl from reading the environment by rules of its own. */
	(void)curl_easy_setopt(easy, CURLOPT_PROXY, proxied ? client->proxy : "");
	(void)curl_easy_setopt(easy, CURLOPT_NOPROXY, client->no_proxy ? client->no_proxy : "");
	(void)curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	(void)curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	(void)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	/* Without it each call that starts beside another opens a connection of its own. */
	(void)curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	(void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	/* Without it a time-out during a name look-up blocks the loop until getaddrinfo() ends. */
	(void)curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
			       (long)HTTP_CLIENT_CONNECT_TIMEOUT_MS);
	(void)curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, timeout_ms(request));
	(void)curl_easy_setopt(easy, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)call->answer.max_bytes);
	set_ca(easy, client);
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
	buf_init_sensitive(&call->answer, request->max_answer_bytes ? request->max_answer_bytes :
								      HTTP_CLIENT_MAX_ANSWER_BYTES);
	(void)curl_easy_setopt(easy, CURLOPT_URL, request->url);
	if (request->body) {
		call->body = secret_ref(request->body);
		(void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS, secret_bytes(call->body));
		(void)curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
				       (curl_off_t)secret_len(call->body));
	}
	(void)curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
	(void)curl_easy_setopt(easy, CURLOPT_USERAGENT, client->user_agent);
	(void)curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
	(void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->error);
	(void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	(void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
	if (request->user) {
		(void)curl_easy_setopt(easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
		(void)curl_easy_setopt(easy, CURLOPT_USERNAME, request->user);
		(void)curl_easy_setopt(easy, CURLOPT_PASSWORD, secret_bytes(request->password));
	}
	call->answer_field = request->answer_field ? xstrdup(request->answer_field) : NULL;
	set_transport(call, request);
	set_headers(call, request);
	list_append(&client->calls, &call->link);
	/* Only sets a timer of 0: the transfer starts from the loop. */
	(void)curl_multi_add_handle(client->multi, easy);
	return call;
}

void http_call_cancel(struct http_call *call)
{
	if (call)
		call_free(call);
}
