/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/net/http_stream.h"

#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/net/http_connection.h"
#include "broker/net/http_response.h"
#include "broker/net/loop.h"

#include <string.h>
#include <sys/epoll.h>

/* What may wait in a stream; its lines are few and short. */
#define MAX_BYTES ((size_t)64 << 10)
/* A chunk that libmicrohttpd asks for at once. */
#define BLOCK_BYTES 1024

struct http_stream {
	struct http_connection *connection;
	http_stream_gone *gone; /* NULL once the owner knows, or has ended it */
	void *ctx;
	struct buf text;
	size_t sent;
	bool ending;
	bool suspended;
};

static void tell_owner(struct http_stream *stream)
{
	http_stream_gone *const gone = stream->gone;

	stream->gone = NULL;
	if (gone)
		gone(stream->ctx);
}

static void resume(struct http_stream *stream)
{
	struct http_connection *const connection = stream->connection;

	if (!stream->suspended)
		return;
	stream->suspended = false;
	loop_source_free(connection->watch);
	connection->watch = NULL;
	MHD_resume_connection(connection->mhd);
	http_server_more(connection->server);
}

/*
 * What is left goes out within the time that any answer has, and to a client that has gone it fails. Not
 * MHD_CONTENT_READER_END_WITH_ERROR: a connection that libmicrohttpd ends by that is closed only when
 * every older one has been.
 */
static void finish(struct http_stream *stream)
{
	stream->ending = true;
	resume(stream);
	http_connection_set_phase(stream->connection, HTTP_PHASE_WRITING);
}

/* A client that closes its side, or dies, has given the stream up. */
static void on_hangup(void *ctx, int fd, uint32_t events)
{
	struct http_stream *const stream = ctx;

	(void)fd;
	(void)events;
	finish(stream);
	tell_owner(stream);
}

/*
 * MHD_ContentReaderCallback. With nothing to send the connection is suspended: to return 0 without that
 * would have libmicrohttpd ask again at once, for ever.
 */
static ssize_t on_read(void *cls, uint64_t position, char *out, size_t max)
{
	struct http_stream *const stream = cls;
	struct http_connection *const connection = stream->connection;

	(void)position;
	if (stream->sent < stream->text.len) {
		const size_t left = stream->text.len - stream->sent;
		const size_t len = left < max ? left : max;
		memcpy(out, stream->text.data + stream->sent, len);
		stream->sent += len;
		if (stream->sent == stream->text.len) {
			buf_reset(&stream->text);
			stream->sent = 0;
		}
		return (ssize_t)len;
	}
	if (stream->ending)
		return MHD_CONTENT_READER_END_OF_STREAM;
	connection->watch = loop_add_io(connection->server->loop, connection->fd, EPOLLRDHUP,
					connection->server->priority, on_hangup, stream);
	/* Whoever holds a stream counts on its end: without a watch it is now. */
	if (!connection->watch) {
		finish(stream);
		return MHD_CONTENT_READER_END_OF_STREAM;
	}
	MHD_suspend_connection(connection->mhd);
	stream->suspended = true;
	return 0;
}

struct http_response *http_stream_new(struct http_connection *connection, unsigned status,
				      const char *content_type, http_stream_gone *gone, void *ctx,
				      struct http_stream **out)
{
	struct http_stream *const stream = xcalloc(1, sizeof(*stream));

	stream->connection = connection;
	stream->gone = gone;
	stream->ctx = ctx;
	buf_init_sensitive(&stream->text, MAX_BYTES);
	*out = stream;
	struct http_response *const response =
		http_response_wrap(connection->server, status, content_type,
				   MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES,
								     on_read, stream, NULL));
	http_response_set_close(response);
	return response;
}

void http_stream_free(struct http_stream *stream)
{
	if (!stream)
		return;
	tell_owner(stream);
	buf_deinit(&stream->text);
	free(stream);
}

void http_stream_write(struct http_stream *stream, const char *text)
{
	/* A client that takes nothing any more. */
	if (buf_append(&stream->text, text, strlen(text)))
		finish(stream);
	else
		resume(stream);
}

void http_stream_end(struct http_stream *stream)
{
	stream->gone = NULL;
	finish(stream);
}

void http_stream_close(struct http_stream *stream)
{
	finish(stream);
	tell_owner(stream);
}
