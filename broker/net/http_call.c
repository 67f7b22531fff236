/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/net/http_call.h"

#include "broker/base/alloc.h"
#include "broker/base/secret.h"

#include <string.h>
#include <strings.h>
#include <sys/socket.h>

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

/* CURLOPT_READFUNCTION */
static size_t on_send(char *out, size_t size, size_t count, void *ctx)
{
	struct http_call *const call = ctx;
	const size_t left = secret_len(call->body) - call->sent;
	const size_t len = left < size * count ? left : size * count;

	memcpy(out, secret_bytes(call->body) + call->sent, len);
	call->sent += len;
	return len;
}

/* CURLOPT_SEEKFUNCTION: asked for where a request is to be sent again. */
static int refuse_rewind(void *ctx, curl_off_t offset, int origin)
{
	(void)ctx;
	(void)offset;
	(void)origin;
	return CURL_SEEKFUNC_FAIL;
}

/*
 * Where a kept connection ends before the answer begins, libcurl by itself sends the request once more on
 * a new one. Not a body that has left already: whether it was acted upon is not known, and an assertion
 * goes out once. A stream that HTTP/2 refused is among them, though it was not looked at: such a call is
 * tried again by who made it, after its backoff.
 */
static void set_body(struct http_call *call, struct secret *body)
{
	call->body = secret_ref(body);
	(void)curl_easy_setopt(call->easy, CURLOPT_POST, 1L);
	(void)curl_easy_setopt(call->easy, CURLOPT_POSTFIELDSIZE_LARGE,
			       (curl_off_t)secret_len(body));
	(void)curl_easy_setopt(call->easy, CURLOPT_READFUNCTION, on_send);
	(void)curl_easy_setopt(call->easy, CURLOPT_READDATA, call);
	(void)curl_easy_setopt(call->easy, CURLOPT_SEEKFUNCTION, refuse_rewind);
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

void http_call_prepare(struct http_call *call, const struct http_client_request *request)
{
	CURL *const easy = call->easy;

	buf_init_sensitive(&call->answer, request->max_answer_bytes ? request->max_answer_bytes :
								      HTTP_CLIENT_MAX_ANSWER_BYTES);
	(void)curl_easy_setopt(easy, CURLOPT_URL, request->url);
	if (request->body)
		set_body(call, request->body);
	(void)curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
	(void)curl_easy_setopt(easy, CURLOPT_USERAGENT, call->client->user_agent);
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
}
