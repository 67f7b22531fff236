/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP calls, to a cloud or over a Unix socket: libcurl's multi interface on the loop. One connection a
 * host is kept and shared; no redirect is followed; a request with a body is sent once.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stddef.h>
#include <stdint.h>

struct err;
struct http_call;
struct http_client;
struct loop;
struct secret;

/* Limits of the contract, section 10. */
#define HTTP_CLIENT_MAX_ANSWER_BYTES ((size_t)256 << 10)
#define HTTP_CLIENT_CONNECT_TIMEOUT_MS 10000
#define HTTP_CLIENT_CALL_TIMEOUT_MS 30000
/* For calls whose answer goes on for as long as both sides like. */
#define HTTP_CLIENT_NO_TIMEOUT (-1)

struct http_client_options {
	const char *ca_file;  /* NULL: the system's bundle */
	const char *proxy;    /* for https that is not loopback; NULL: none */
	const char *no_proxy; /* as curl's NO_PROXY; NULL: none */
	const char *user_agent;
};

/* Why a call brought no answer, in the words of a closed set. */
enum http_failure {
	HTTP_FAILURE_NONE,	  /* there is an answer */
	HTTP_FAILURE_RESOLVE,	  /* the host's name has no address */
	HTTP_FAILURE_CONNECT,	  /* no connection */
	HTTP_FAILURE_TLS,	  /* the handshake failed */
	HTTP_FAILURE_CERTIFICATE, /* the server's certificate, or the CA bundle, is not good */
	HTTP_FAILURE_TIMEOUT,
	HTTP_FAILURE_BROKEN,	/* the connection ended in the middle */
	HTTP_FAILURE_TOO_LARGE, /* the answer passes the request's max_answer_bytes */
	HTTP_FAILURE_OTHER,
};

/* A header that a request brings. */
struct http_field {
	const char *name;
	const char *value; /* may be a secret */
};

/*
 * A whole line of an answer that is still coming, without its newline. Borrowed; called from the loop,
 * not from within libcurl: the call may be cancelled in it.
 */
typedef void http_client_line(void *ctx, const char *line, size_t len);

struct http_client_request {
	const char *method; /* "GET", "POST", "PATCH" or "DELETE" */
	const char *url;
	const char *content_type;    /* of the body; NULL without one */
	struct secret *body;	     /* NULL: none. Referenced until the call ends. */
	const struct secret *bearer; /* Authorization: Bearer; NULL: none */
	const char *user;	     /* with password: Authorization: Basic; NULL: none */
	const struct secret *password;
	const char *quota_project; /* x-goog-user-project; NULL: none */
	/* More headers; the caller has checked that each is one. */
	const struct http_field *fields;
	size_t field_count;
	const char *answer_field; /* the header of the answer that is wanted; NULL: none */
	int64_t timeout_ms;	  /* 0: HTTP_CLIENT_CALL_TIMEOUT_MS */
	const char *unix_socket;  /* the path to connect to instead of the URL's host; NULL: none */
	size_t max_answer_bytes;  /* 0: HTTP_CLIENT_MAX_ANSWER_BYTES */
	/*
	 * NULL, or who takes the lines of a 2xx answer as they come: they are not part of its body, and
	 * max_answer_bytes is the longest of them.
	 */
	http_client_line *line;
};

/* Borrowed for the time of the callback; the body is cleared after it. */
struct http_answer {
	enum http_failure failure;
	const char *failure_text; /* libcurl's words for it; "" where there is an answer */
	long status;
	const char *body; /* NUL-terminated; may hold a secret */
	size_t body_len;
	const char *content_type; /* "" where there is none */
	int64_t date_s;		  /* Date in seconds since 1970; -1 where there is none */
	int64_t retry_after_s;	  /* -1 where there is none */
	const char *field; /* the value of answer_field; NULL where there is none, or several */
};

typedef void http_client_done(void *ctx, const struct http_answer *answer);

NODISCARD int http_client_new(struct loop *loop, const struct http_client_options *options,
			      struct http_client **out, struct err *err);
/* Every call must have ended or been cancelled. NULL is fine. */
void http_client_free(struct http_client *client);

/* The CA bundle of calls that start from now on; NULL: the system's. Copied. */
void http_client_set_ca_file(struct http_client *client, const char *ca_file);

/*
 * Starts a call. `done` is called exactly once, later, unless it is cancelled first; the handle is dead
 * once `done` is called. Does not fail: what is wrong comes as an answer.
 */
NODISCARD struct http_call *http_client_start(struct http_client *client,
					      const struct http_client_request *request,
					      http_client_done *done, void *ctx);
/* Ends a call without its callback. NULL is fine. */
void http_call_cancel(struct http_call *call);
