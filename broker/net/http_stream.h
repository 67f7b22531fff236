/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the HTTP server: an answer whose body is written piece by piece. Private to http_request.c and
 * http_listener.c.
 */
#pragma once

#include "broker/net/http_server.h"

struct http_connection;

/* A stream, and the response that brings it on its way; the response is the caller's. */
NODISCARD struct http_response *http_stream_new(struct http_connection *connection, unsigned status,
						const char *content_type, http_stream_gone *gone,
						void *ctx, struct http_stream **out);
/* Its request has ended. Tells the owner, if that has not happened. NULL is fine. */
void http_stream_free(struct http_stream *stream);
/* The server ends: tells the owner and ends it in order. */
void http_stream_close(struct http_stream *stream);
