/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP/1.1 server for many listening sockets in one loop: one libmicrohttpd daemon without listeners
 * of its own. Accepting, limits and deadlines are ours; a request may be answered at once or later.
 */
#pragma once

#include "broker/base/compiler.h"
#include "broker/net/address.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct http_listener;
struct http_request;
struct http_response;
struct http_server;
struct http_stream;
struct loop;

/* From accept, or from the first byte after an answer, to a whole request. */
#define HTTP_SERVER_REQUEST_TIMEOUT_MS 5000
/* A client that does not take its answer. */
#define HTTP_SERVER_WRITE_TIMEOUT_MS 5000
#define HTTP_SERVER_IDLE_TIMEOUT_MS 60000
/* How long requests under way may take to end when the server drains. */
#define HTTP_SERVER_DRAIN_MS 5000

/* What a connection can run into before there is a request. */
enum http_limit {
	HTTP_LIMIT_CONNECTIONS, /* one more than the endpoint or the server takes: 503 */
	HTTP_LIMIT_SLOW,	/* no whole request in time: 408 */
	HTTP_LIMIT_FOREIGN,	/* not of the shared socket's own namespace: closed */
};

struct http_handler {
	/*
	 * A whole request head has arrived. It is answered with http_request_respond(), here or later;
	 * one that is malformed or has a body must be answered here. What the accessors point to is
	 * only good during this call.
	 */
	void (*request)(void *ctx, struct http_request *request);
	/* The client went away before the answer: the request must not be used again. */
	void (*gone)(void *ctx, struct http_request *request);
	/* Time is up while the request waits: it must be answered here. */
	void (*closing)(void *ctx, struct http_request *request);
	/*
	 * Is this a peer that the listener is for? Where no place is left, at the listener or in the
	 * server, it takes that of one that is not. NULL: all peers are alike.
	 */
	bool (*favours)(void *ctx, const struct address *peer);
	/* A limit was met by a peer; may be NULL. */
	void (*limit)(void *ctx, enum http_limit limit, const struct address *peer);
	/*
	 * A shared socket listens no more, or its other holder held this process up: the listener is to be
	 * closed. Called once. Only for those.
	 */
	void (*lost)(void *ctx);
};

struct http_server_options {
	struct loop *loop;
	int64_t priority;
	size_t max_connections;
	/* Headers of every answer: name, value, …, NULL. Must outlive the server. */
	const char *const *headers;
};

/* Whether libmicrohttpd is fit for it is not looked at here: see http_server_self_test(). */
NODISCARD int http_server_new(const struct http_server_options *options, struct http_server **out,
			      struct err *err);
/* Every listener must have been closed. Ends the connections that are left. NULL is fine. */
void http_server_free(struct http_server *server);

/*
 * Shows on a socket pair that this libmicrohttpd is the kind that the head check was written for: plain
 * requests pass, a forged header name does not.
 */
NODISCARD int http_server_self_test(struct err *err);

/*
 * Accepts no more and ends every idle connection; requests under way are answered and then closed, for
 * at most HTTP_SERVER_DRAIN_MS. `done` is called once, later. Listeners stay their owners'.
 */
void http_server_drain(struct http_server *server, void (*done)(void *ctx), void *ctx);

size_t http_server_connections(const struct http_server *server);

/*
 * Serves a listening socket, which it takes. `local` is what it is bound to, NULL for a socket of the
 * file system; of the connections to one of those, streams do not count, and one user has half.
 */
NODISCARD int http_listener_new(struct http_server *server, int takes_fd,
				const struct address *local, size_t max_connections,
				struct http_listener **out, struct err *err);
/* Whom new requests go to. Those under way stay with the one they began with. */
void http_listener_set_handler(struct http_listener *listener, const struct http_handler *handler,
			       void *ctx);
/* Bodies up to so many bytes are taken; 0, as at first: every body is refused. */
void http_listener_set_max_body(struct http_listener *listener, size_t max_bytes);
void http_listener_set_max_connections(struct http_listener *listener, size_t max_connections);
/*
 * Another process holds the socket too: it is not trusted to leave it as it is, and only connections
 * from the socket's own network namespace are taken. With `twin`, unless NULL, the limit of connections
 * is one; the two are closed together.
 */
void http_listener_share(struct http_listener *listener, const struct http_listener *twin);
/*
 * Stops listening at once. Waiting requests are answered through closing(), then everything of it is
 * closed. NULL is fine.
 */
void http_listener_close(struct http_listener *listener);

/* One header of a request; neither part ends with a NUL, a value may end in blanks. */
struct http_header {
	const char *name;
	size_t name_len;
	const char *value;
	size_t value_len;
};

const char *http_request_method(const struct http_request *request);
/* The raw bytes of the request line's target, and a NUL; it outlives the call, as the request does. */
const char *http_request_target(const struct http_request *request, size_t *len);
const struct http_header *http_request_headers(const struct http_request *request, size_t *count);
/* Not plain HTTP: what libmicrohttpd reads in it may not be what the client sent. */
bool http_request_malformed(const struct http_request *request);
/* One that this listener does not take: it must be refused, and is not there to be read. */
bool http_request_has_body(const struct http_request *request);
/* The body that was taken, and a NUL; good until the request is answered. */
const char *http_request_body(const struct http_request *request, size_t *len);
const struct address *http_request_peer(const struct http_request *request);
/* The connection's own address, without the port. */
const char *http_request_local_ip(const struct http_request *request);
/* Who is at the other end of a socket of the file system. */
uid_t http_request_peer_uid(const struct http_request *request);
pid_t http_request_peer_pid(const struct http_request *request);
gid_t http_request_peer_gid(const struct http_request *request);
/* Its other groups: in, the room; out, how many. -1 where they cannot be told. */
NODISCARD int http_request_peer_groups(const struct http_request *request, gid_t *groups,
				       size_t *count);
/* When the whole head had arrived, on the boot-time clock. */
int64_t http_request_arrival_ms(const struct http_request *request);

/* A pointer of the handler's, NULL at first. */
void http_request_set_user(struct http_request *request, void *user);
void *http_request_user(const struct http_request *request);

/* Answers; the response is borrowed. The request is dead afterwards. */
void http_request_respond(struct http_request *request, const struct http_response *response);

/* The client of a stream has gone, or the server ends: the stream must not be used again. */
typedef void http_stream_gone(void *ctx);

/*
 * Answers with a body that is written piece by piece and ends by http_stream_end(), or when the client
 * closes its side. The stream is the caller's until then.
 */
NODISCARD struct http_stream *http_request_respond_stream(struct http_request *request,
							  unsigned status, const char *content_type,
							  http_stream_gone *gone, void *ctx);
void http_stream_write(struct http_stream *stream, const char *text);
/* Ends it in order; `gone` is not called any more. */
void http_stream_end(struct http_stream *stream);

/* How a response holds its body. */
enum http_body {
	HTTP_BODY_CONSTANT, /* borrowed, outlives every answer */
	HTTP_BODY_COPY,
	HTTP_BODY_SECRET, /* a copy, cleared when the last answer is sent */
};

/*
 * An answer that any number of requests may share. Carries the server's common headers, Content-Type,
 * Content-Length and Date. The caller's reference.
 */
NODISCARD struct http_response *http_response_new(const struct http_server *server, unsigned status,
						  const char *content_type, const char *body,
						  size_t len, enum http_body how);
void http_response_add_header(struct http_response *response, const char *name, const char *value);
/* The connection ends with this answer. */
void http_response_set_close(struct http_response *response);
/* NULL is fine. */
void http_response_free(struct http_response *response);
