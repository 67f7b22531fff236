/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the HTTP server: what a request's head really was. Private to http_request.c.
 */
#pragma once

#include "broker/net/http_request.h"
#include "broker/net/http_server.h"

/* A head as libmicrohttpd reports it. */
struct http_head {
	const char *method;
	const char *url;
	const char *version;
	size_t target_len; /* in: of the raw target up to a NUL; out: one more where there is one */
	struct http_header *headers;
	size_t header_count;
};

/*
 * The contiguity check. Collects up to HTTP_MAX_HEADERS headers into head->headers; false where the
 * head is not plain HTTP, and what libmicrohttpd reports may not be what the client sent.
 */
NODISCARD bool http_head_read(struct MHD_Connection *mhd, struct http_head *head);

/* Bytes of the whole head. */
size_t http_head_size(struct MHD_Connection *mhd);

struct http_body_marks {
	bool length;	       /* a Content-Length, of length_bytes */
	bool coded;	       /* any Transfer-Encoding */
	bool expect;	       /* any Expect, which announces one too */
	bool conflict;	       /* two lengths, or one that is no number */
	uint64_t length_bytes; /* capped at UINT64_MAX */
};

/* What the head says of a body. */
void http_head_body(struct MHD_Connection *mhd, struct http_body_marks *marks);
