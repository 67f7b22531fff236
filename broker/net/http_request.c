/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/net/http_request.h"

#include "broker/base/alloc.h"
#include "broker/base/clock.h"
#include "broker/net/http_connection.h"
#include "broker/net/loop.h"

#include <string.h>
#include <strings.h>
#include <sys/epoll.h>

struct http_request {
	struct http_connection *connection;
	const struct http_handler *handler; /* those it began with */
	void *handler_ctx;
	void *user;
	const char *method;		   /* during the handler's call */
	const struct http_header *headers; /* likewise */
	size_t header_count;
	int64_t arrival_ms;
	bool seen;   /* libmicrohttpd has called once */
	bool handed; /* to the handler */
	bool answered;
	bool suspended;
	bool malformed;
	bool has_body;
	size_t target_len;
	char target[];
};

struct http_response {
	struct MHD_Response *mhd;
	unsigned status;
};

static struct http_connection *connection_of(struct MHD_Connection *mhd)
{
	const union MHD_ConnectionInfo *const info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info->socket_context;
}

size_t http_request_unescape(void *cls, struct MHD_Connection *mhd, char *text)
{
	(void)cls;
	(void)mhd;
	return strlen(text);
}

void *http_request_on_target(void *cls, const char *target, struct MHD_Connection *mhd)
{
	const size_t len = strlen(target);
	struct http_request *const request = xcalloc(1, sizeof(*request) + len + 1);

	(void)cls;
	request->connection = connection_of(mhd);
	request->target_len = len;
	memcpy(request->target, target, len);
	request->connection->request = request;
	/* The rest of the head has what is left of the time that began with the first byte. */
	if (request->connection->phase == HTTP_PHASE_IDLE)
		http_connection_set_phase(request->connection, HTTP_PHASE_READING);
	return request;
}

/* RFC 9110 section 5.6.2 */
static bool is_token(const char *text, size_t len)
{
	static const char others[] = "!#$%&'*+-.^_`|~";

	for (size_t i = 0; i < len; i++) {
		const char c = text[i];
		const bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
				   (c >= 'A' && c <= 'Z');
		if (!alnum && (!c || !strchr(others, c)))
			return false;
	}
	return len > 0;
}

static bool has_control(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		const unsigned char c = (unsigned char)text[i];
		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return true;
	}
	return false;
}

/*
 * The contiguity check. libmicrohttpd parses in place and leniently: folded lines, bare LF, NUL and
 * blanks in odd places change what it reports, and can forge a header's name. In what it reports of a
 * plain head each piece begins exactly where the one before ended; anything else is refused.
 */

/*
 * The byte behind a line of which a piece ends at `p`, or NULL where no CR LF was there. 0.9.75 has put
 * NUL over both bytes; 1.0 over the first one behind the piece, which is the CR or a trailing blank.
 */
static const char *behind_line(const char *p)
{
	if (p[0])
		return NULL;
	if (!p[1] || p[1] == '\n')
		return p + 2;
	p++;
	while (*p == ' ' || *p == '\t')
		p++;
	return p[0] == '\r' && p[1] == '\n' ? p + 2 : NULL;
}

/* The empty line that ends the head. */
static const char *behind_empty_line(const char *p)
{
	return (p[0] && p[0] != '\r') || (p[1] && p[1] != '\n') ? NULL : p + 2;
}

struct walk {
	const char *expected; /* where the next header must begin; NULL: not plain */
	struct http_header *headers;
	size_t count;
};

static enum MHD_Result walk_header(void *cls, enum MHD_ValueKind kind, const char *name,
				   size_t name_len, const char *value, size_t value_len)
{
	struct walk *const walk = cls;

	(void)kind;
	if (walk->count == HTTP_MAX_HEADERS || name != walk->expected ||
	    !is_token(name, name_len) || !value) {
		walk->expected = NULL;
		return MHD_NO;
	}
	const char *begin = name + name_len + 1;
	while (*begin == ' ' || *begin == '\t')
		begin++;
	const bool good = value == begin && !has_control(value, value_len);
	walk->headers[walk->count++] = (struct http_header){name, name_len, value, value_len};
	walk->expected = good ? behind_line(value + value_len) : NULL;
	return walk->expected ? MHD_YES : MHD_NO;
}

static size_t head_size(struct MHD_Connection *mhd)
{
	const union MHD_ConnectionInfo *const info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

	return info ? info->header_size : 0;
}

/* Collects the headers; false where the head is not plain HTTP. */
static bool read_head(struct http_request *request, const char *method, const char *url,
		      const char *version)
{
	struct MHD_Connection *const mhd = request->connection->mhd;
	struct http_header *const headers = request->connection->server->scratch;
	struct walk walk = {.headers = headers};

	request->method = method;
	request->headers = headers;
	if (!is_token(method, strlen(method)) || url != method + strlen(method) + 1 ||
	    strlen(version) != strlen("HTTP/1.1"))
		return false;
	if (version > url + request->target_len + 1)
		request->target_len++; /* a NUL in the target, which counts as a byte of it */
	else if (version != url + request->target_len + 1)
		return false;
	walk.expected = behind_line(version + strlen("HTTP/1.1"));
	if (!walk.expected)
		return false;
	(void)MHD_get_connection_values_n(mhd, MHD_HEADER_KIND, walk_header, &walk);
	request->header_count = walk.count;
	const char *const end = walk.expected;
	return end && behind_empty_line(end) == method + head_size(mhd);
}

static bool is_name(const char *name, size_t len, const char *wanted)
{
	return len == strlen(wanted) && !strncasecmp(name, wanted, len);
}

struct body_marks {
	size_t lengths;
	bool body;
};

static enum MHD_Result note_body(void *cls, enum MHD_ValueKind kind, const char *name,
				 size_t name_len, const char *value, size_t value_len)
{
	struct body_marks *const marks = cls;

	(void)kind;
	if (!value)
		return MHD_YES;
	/* Expect announces a body, and would have libmicrohttpd send a 100 first. */
	if (is_name(name, name_len, "Transfer-Encoding") || is_name(name, name_len, "Expect"))
		marks->body = true;
	if (is_name(name, name_len, "Content-Length")) {
		marks->lengths++;
		while (value_len && (value[value_len - 1] == ' ' || value[value_len - 1] == '\t'))
			value_len--;
		if (value_len != 1 || value[0] != '0')
			marks->body = true;
	}
	return MHD_YES;
}

static void on_hangup(void *ctx, int fd, uint32_t events)
{
	struct http_connection *const connection = ctx;

	(void)fd;
	/* Half a hang-up is a client that has said all it has to say and still listens. */
	if (events & (EPOLLHUP | EPOLLERR))
		http_request_abandon(connection->request);
}

static enum MHD_Result hand_over(struct http_request *request)
{
	struct http_connection *const connection = request->connection;

	request->handler = connection->listener->handler;
	request->handler_ctx = connection->listener->handler_ctx;
	request->arrival_ms = clock_boot_ms(loop_timers(connection->server->loop)->clock);
	request->handed = true;
	connection->consumed_bytes += head_size(connection->mhd);
	http_connection_set_phase(connection, HTTP_PHASE_WAITING);
	request->handler->request(request->handler_ctx, request);
	request->method = "";
	request->header_count = 0;
	if (request->answered)
		return MHD_YES;
	MHD_suspend_connection(connection->mhd);
	request->suspended = true;
	/* Without a watch the answer is made all the same, and fails to be sent. */
	connection->watch = loop_add_io(connection->server->loop, connection->fd, 0,
					connection->server->priority, on_hangup, connection);
	return MHD_YES;
}

enum MHD_Result http_request_on_access(void *cls, struct MHD_Connection *mhd, const char *url,
				       const char *method, const char *version,
				       const char *upload_data, size_t *upload_data_size,
				       void **con_cls)
{
	struct http_request *const request = *con_cls;
	struct body_marks marks = {0};

	(void)cls;
	(void)upload_data;
	if (!request || request->connection->gone || !request->connection->listener->server)
		return MHD_NO;
	if (request->handed)
		return MHD_NO; /* a body where none was announced */
	if (request->seen) {
		if (*upload_data_size)
			return MHD_NO;
		request->malformed = !read_head(request, method, url, version);
		return hand_over(request);
	}
	request->seen = true;
	(void)MHD_get_connection_values_n(mhd, MHD_HEADER_KIND, note_body, &marks);
	request->has_body = marks.body || marks.lengths > 1;
	/* An answer in the first call ends the connection and reads no body: right for this one only. */
	return request->has_body ? hand_over(request) : MHD_YES;
}

void http_request_on_completed(void *cls, struct MHD_Connection *mhd, void **con_cls,
			       enum MHD_RequestTerminationCode code)
{
	struct http_request *const request = *con_cls;

	(void)cls;
	(void)mhd;
	(void)code;
	*con_cls = NULL;
	if (!request)
		return;
	struct http_connection *const connection = request->connection;
	connection->request = NULL;
	if (request->handed && !request->answered)
		request->handler->gone(request->handler_ctx, request);
	/* After a head that was misread, nobody knows where the next one begins. */
	const bool last = request->malformed || connection->server->draining ||
			  !connection->listener->server;
	free(request);
	http_connection_set_phase(connection, HTTP_PHASE_IDLE);
	if (last)
		http_connection_cut(connection);
}

static void wake(struct http_request *request)
{
	struct http_connection *const connection = request->connection;

	loop_source_free(connection->watch);
	connection->watch = NULL;
	request->suspended = false;
	MHD_resume_connection(connection->mhd);
	http_server_more(connection->server);
}

void http_request_abandon(struct http_request *request)
{
	if (!request || !request->suspended)
		return;
	request->connection->gone = true;
	wake(request);
}

void http_request_respond(struct http_request *request, const struct http_response *response)
{
	struct http_connection *const connection = request->connection;

	request->answered = true;
	if (MHD_queue_response(connection->mhd, response->status, response->mhd) != MHD_YES)
		connection->gone = true;
	const bool suspended = request->suspended;
	if (suspended)
		wake(request);
	http_connection_set_phase(connection, HTTP_PHASE_WRITING);
}

const char *http_request_method(const struct http_request *request)
{
	return request->method;
}

const char *http_request_target(const struct http_request *request, size_t *len)
{
	*len = request->target_len;
	return request->target;
}

const struct http_header *http_request_headers(const struct http_request *request, size_t *count)
{
	*count = request->header_count;
	return request->headers;
}

bool http_request_malformed(const struct http_request *request)
{
	return request->malformed;
}

bool http_request_has_body(const struct http_request *request)
{
	return request->has_body;
}

const struct address *http_request_peer(const struct http_request *request)
{
	return &request->connection->peer;
}

const char *http_request_local_ip(const struct http_request *request)
{
	return request->connection->local_ip;
}

uid_t http_request_peer_uid(const struct http_request *request)
{
	return request->connection->peer_uid;
}

pid_t http_request_peer_pid(const struct http_request *request)
{
	return request->connection->peer_pid;
}

int64_t http_request_arrival_ms(const struct http_request *request)
{
	return request->arrival_ms;
}

void http_request_set_user(struct http_request *request, void *user)
{
	request->user = user;
}

void *http_request_user(const struct http_request *request)
{
	return request->user;
}

/* MHD_ContentReaderFreeCallback of a secret body: its length stands in front of it. */
static void free_secret_body(void *cls)
{
	size_t *const block = cls;

	explicit_bzero(block, sizeof(*block) + *block);
	free(block);
}

static struct MHD_Response *secret_response(const char *body, size_t len)
{
	size_t *const block = xmalloc(sizeof(*block) + len);

	*block = len;
	memcpy(block + 1, body, len);
	return MHD_create_response_from_buffer_with_free_callback_cls(len, block + 1,
								      free_secret_body, block);
}

struct http_response *http_response_new(const struct http_server *server, unsigned status,
					const char *content_type, const char *body, size_t len,
					enum http_body how)
{
	struct http_response *const response = xcalloc(1, sizeof(*response));

	response->status = status;
	if (how == HTTP_BODY_SECRET)
		response->mhd = secret_response(body, len);
	else
		response->mhd = MHD_create_response_from_buffer(len, (void *)body,
								how == HTTP_BODY_COPY ?
									MHD_RESPMEM_MUST_COPY :
									MHD_RESPMEM_PERSISTENT);
	if (!response->mhd)
		abort();
	http_response_add_header(response, "Content-Type", content_type);
	for (const char *const *h = server->headers; h[0]; h += 2)
		http_response_add_header(response, h[0], h[1]);
	return response;
}

void http_response_add_header(struct http_response *response, const char *name, const char *value)
{
	if (MHD_add_response_header(response->mhd, name, value) != MHD_YES)
		abort();
}

void http_response_set_close(struct http_response *response)
{
	http_response_add_header(response, "Connection", "close");
}

void http_response_free(struct http_response *response)
{
	if (!response)
		return;
	MHD_destroy_response(response->mhd);
	free(response);
}
