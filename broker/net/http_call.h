/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call of the HTTP client, and what libcurl is told of it. For the two files of the client only.
 */
#pragma once

#include "broker/base/buf.h"
#include "broker/base/list.h"
#include "broker/base/timer.h"
#include "broker/net/http_client.h"

#include <curl/curl.h>
#include <stdbool.h>

struct loop_source;

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
	size_t sent;	    /* of the body */
	bool too_large;
	bool lost; /* libcurl cannot bring it to its end: on_finish() does */
	http_client_line *line;
	char error[CURL_ERROR_SIZE];
	http_client_done *done;
	void *ctx;
};

/* Tells call->easy all of the request, of which nothing need be kept but its body's reference. */
void http_call_prepare(struct http_call *call, const struct http_client_request *request);
