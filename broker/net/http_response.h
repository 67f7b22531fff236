/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the HTTP server: what libmicrohttpd needs of a response. Private to http_request.c and
 * http_stream.c.
 */
#pragma once

#include "broker/net/http_request.h"
#include "broker/net/http_server.h"

unsigned http_response_status(const struct http_response *response);
struct MHD_Response *http_response_mhd(const struct http_response *response);

/* Wraps a libmicrohttpd response, which it takes, and adds the headers that every answer has. */
NODISCARD struct http_response *http_response_wrap(const struct http_server *server,
						   unsigned status, const char *content_type,
						   struct MHD_Response *takes_mhd);
