/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/net/http_request.h"

#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/base/clock.h"
#include "broker/net/http_connection.h"
#include "broker/net/http_head.h"
#include "broker/net/http_response.h"
#include "broker/net/http_stream.h"
#include "broker/net/loop.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* Longer than any answer takes: deadlines are ours. */
#define NEVER_S 86400U

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
	bool waited; /* it was */
	bool malformed;
	bool has_body;		    /* one that is refused */
	struct buf body;	    /* one that is taken */
	struct http_stream *stream; /* the answer, where it is one */
	size_t target_len;
	char target[];
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

static void on_hangup(void *ctx, int fd, uint32_t events)
{
	struct http_connection *const connection = ctx;

	(void)fd;
	/* Half a hang-up is a client that has said all it has to say and still listens. */
	if (events & (EPOLLHUP | EPOLLERR))
		http_request_abandon(connection->request);
}

/*
 * libmicrohttpd reads from a connection that goes on before it looks at the answer, and takes the end of
 * what a half-closed client says for the end of it all. It first looks at those that have a timeout of
 * their own, and at the oldest one, which is why it seems to work with a single connection. To be called
 * before it is suspended: from 1.0 on a timeout that is set while it is counts for nothing.
 */
static void answer_before_reading(const struct http_connection *connection, bool on)
{
	(void)MHD_set_connection_option(connection->mhd, MHD_CONNECTION_OPTION_TIMEOUT,
					on ? NEVER_S : 0U);
}

static enum MHD_Result hand_over(struct http_request *request)
{
	struct http_connection *const connection = request->connection;

	request->handler = connection->listener->handler;
	request->handler_ctx = connection->listener->handler_ctx;
	request->arrival_ms = clock_boot_ms(loop_timers(connection->server->loop)->clock);
	request->handed = true;
	connection->consumed_bytes += http_head_size(connection->mhd) + request->body.len;
	http_connection_set_phase(connection, HTTP_PHASE_WAITING);
	request->handler->request(request->handler_ctx, request);
	request->method = "";
	request->header_count = 0;
	if (request->answered)
		return MHD_YES;
	answer_before_reading(connection, true);
	MHD_suspend_connection(connection->mhd);
	request->suspended = true;
	request->waited = true;
	/* Without a watch the answer is made all the same, and fails to be sent. */
	connection->watch = loop_add_io(connection->server->loop, connection->fd, 0,
					connection->server->priority, on_hangup, connection);
	return MHD_YES;
}

/* The first call: the head is there. True where the request is to be answered at once. */
static bool judge_head(struct http_request *request, struct MHD_Connection *mhd)
{
	const size_t max_bytes = request->connection->listener->max_body_bytes;
	struct http_body_marks marks;

	http_head_body(mhd, &marks);
	if (!max_bytes)
		request->has_body = marks.coded || marks.expect || marks.conflict ||
				    (marks.length && marks.length_bytes);
	else
		request->has_body = marks.conflict || (marks.coded && marks.length) ||
				    (marks.length && marks.length_bytes > max_bytes);
	buf_init_sensitive(&request->body, max_bytes);
	return request->has_body;
}

static bool read_head(struct http_request *request, struct MHD_Connection *mhd, const char *method,
		      const char *url, const char *version)
{
	struct http_head head = {
		.method = method,
		.url = url,
		.version = version,
		.target_len = request->target_len,
		.headers = request->connection->server->scratch,
	};

	const bool plain = http_head_read(mhd, &head);
	request->method = method;
	request->target_len = head.target_len;
	request->headers = head.headers;
	request->header_count = head.header_count;
	return plain;
}

/*
 * Called once with the head, once for each piece of a body, and once with the whole request. An answer
 * in the first call ends the connection and reads no body: right for a body that is refused, and for
 * nothing else.
 */
enum MHD_Result http_request_on_access(void *cls, struct MHD_Connection *mhd, const char *url,
				       const char *method, const char *version,
				       const char *upload_data, size_t *upload_data_size,
				       void **con_cls)
{
	struct http_request *const request = *con_cls;

	(void)cls;
	if (!request || request->connection->gone || !request->connection->listener->server ||
	    request->handed)
		return MHD_NO;
	if (!request->seen) {
		request->seen = true;
		return judge_head(request, mhd) ? hand_over(request) : MHD_YES;
	}
	if (*upload_data_size) {
		/* Too long in pieces: the rest is read, within its time, for the answer to reach the client. */
		if (buf_append(&request->body, upload_data, *upload_data_size))
			request->has_body = true;
		*upload_data_size = 0;
		return MHD_YES;
	}
	request->malformed = !read_head(request, mhd, method, url, version);
	return hand_over(request);
}

void http_request_end(struct http_request *request)
{
	request->connection->request = NULL;
	if (request->handed && !request->answered)
		request->handler->gone(request->handler_ctx, request);
	http_stream_free(request->stream);
	buf_deinit(&request->body);
	free(request);
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
	if (request->waited)
		answer_before_reading(connection, false);
	/* After a head that was misread, nobody knows where the next one begins. */
	const bool malformed = request->malformed;
	http_request_end(request);
	const bool last = malformed || connection->server->draining ||
			  !connection->listener->server;
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
	if (MHD_queue_response(connection->mhd, http_response_status(response),
			       http_response_mhd(response)) != MHD_YES)
		connection->gone = true;
	if (request->suspended)
		wake(request);
	http_connection_set_phase(connection, HTTP_PHASE_WRITING);
}

struct http_stream *http_request_respond_stream(struct http_request *request, unsigned status,
						const char *content_type, http_stream_gone *gone,
						void *ctx)
{
	struct http_connection *const connection = request->connection;
	struct http_response *const response =
		http_stream_new(connection, status, content_type, gone, ctx, &request->stream);

	http_request_respond(request, response);
	http_response_free(response);
	http_connection_set_phase(connection, HTTP_PHASE_STREAMING);
	return request->stream;
}

struct http_stream *http_request_stream(const struct http_request *request)
{
	return request->stream;
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

const char *http_request_body(const struct http_request *request, size_t *len)
{
	*len = request->body.len;
	return request->body.data ? request->body.data : "";
}

int http_request_peer_groups(const struct http_request *request, gid_t *groups, size_t *count)
{
	socklen_t len = (socklen_t)(*count * sizeof(*groups));

	if (getsockopt(request->connection->fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len))
		return -1;
	*count = len / sizeof(*groups);
	return 0;
}

gid_t http_request_peer_gid(const struct http_request *request)
{
	return request->connection->peer_gid;
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
