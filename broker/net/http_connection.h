/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the HTTP server: one accepted connection, what it is doing and how long it may. Private to
 * http_server.c, http_request.c, http_listener.c and http_connection.c.
 */
#pragma once

#include "broker/base/list.h"
#include "broker/base/timer.h"
#include "broker/net/http_server.h"

struct MHD_Connection;
struct MHD_Daemon;
struct loop_source;

/* What is taken at one wake-up of a listening socket. */
#define HTTP_ACCEPT_BATCH 16
/* Connections beyond the limit: what was cut to make room ends in the daemon's next run. */
#define HTTP_MAX_DISPLACED 256
/* Headers of one request that are looked at; the memory pool holds about 116. */
#define HTTP_MAX_HEADERS 128

struct http_server {
	struct loop *loop;
	struct MHD_Daemon *daemon;
	struct loop_source *epoll; /* the daemon's own epoll descriptor */
	struct loop_source *more;  /* it has work left */
	int64_t priority;
	size_t max_connections;
	size_t connections;
	size_t displaced; /* of them, cut and about to end */
	size_t peak;	  /* since memory was last given back */
	const char *const *headers;
	struct list listeners;
	struct http_connection *accepting; /* handed over while MHD_add_connection() runs */
	int reserve_fd;			   /* given up to refuse one when descriptors run out */
	struct http_header scratch[HTTP_MAX_HEADERS];
	struct timer drain_timer;
	bool draining;
	void (*drained)(void *ctx);
	void *drained_ctx;
};

struct http_listener {
	struct list link;
	struct http_server *server; /* NULL once closed */
	struct loop_source *source;
	int fd;
	struct address local;
	bool has_local;
	bool shared;			  /* with another process: see http_listener_share() */
	const struct http_listener *twin; /* NULL: none */
	size_t max_connections;
	size_t max_body_bytes;
	size_t count;
	size_t displaced; /* of them, cut and about to end */
	struct list connections;
	const struct http_handler *handler;
	void *handler_ctx;
	struct timer pause; /* accepting rests until then, or has ended */
};

enum http_phase {
	HTTP_PHASE_READING, /* until a whole request is there */
	HTTP_PHASE_WAITING, /* the handler has it */
	HTTP_PHASE_WRITING,
	HTTP_PHASE_STREAMING, /* an answer without end */
	HTTP_PHASE_IDLE,
};

struct http_connection {
	struct list link;
	struct http_server *server;
	struct http_listener *listener;
	struct MHD_Connection *mhd;
	struct http_request *request;
	int fd;
	enum http_phase phase;
	int64_t since_ms;
	int64_t deadline_ms; /* of the phase; 0: none */
	struct timer timer;
	struct loop_source *watch; /* IDLE: the first byte; WAITING: the hang-up */
	uint64_t consumed_bytes;   /* of whole request heads */
	bool gone;		   /* nothing is to be sent any more */
	bool displaced;		   /* cut to make room; not counted any more */
	struct address peer;
	uid_t peer_uid;
	gid_t peer_gid;
	pid_t peer_pid;
	char local_ip[ADDRESS_TEXT_SIZE];
};

/* http_connection.c */
/* Wraps an accepted descriptor; not in the listener's list yet. */
NODISCARD struct http_connection *http_connection_new(struct http_listener *listener, int fd,
						      const struct address *peer);
/* After the descriptor is closed, or about to be by libmicrohttpd. Takes it off its listener's list. */
void http_connection_free(struct http_connection *connection);
void http_connection_set_phase(struct http_connection *connection, enum http_phase phase);
/* Shuts the descriptor down; libmicrohttpd closes it in its next run. */
void http_connection_cut(struct http_connection *connection);
/* Sends a whole answer on a socket that libmicrohttpd does not own, or that is being cut. */
void http_connection_send_refusal(const struct http_server *server, int fd, unsigned status);

/* http_request.c */
/* Nothing more comes of it; who waits for it is told. */
void http_request_end(struct http_request *request);
/* Wakes a waiting request whose client is gone: the connection ends. */
void http_request_abandon(struct http_request *request);
/* Its answer, where that is a stream. */
struct http_stream *http_request_stream(const struct http_request *request);

/* http_listener.c */
/* Without this connection, which ends; frees a closed listener with its last one. */
void http_listener_release(struct http_listener *listener,
			   const struct http_connection *connection);
/* Has every waiting request answered, and ends what is idle. */
void http_listener_dismiss(struct http_listener *listener);
/* Takes a batch of what waits; false where nothing is left. */
bool http_listener_accept(struct http_listener *listener);

/* http_server.c */
/* Hands an accepted descriptor over. False where it was refused; the descriptor is closed then. */
bool http_server_adopt(struct http_server *server, struct http_connection *connection);
void http_server_more(struct http_server *server);
/* Called when a connection has ended. */
void http_server_ended(struct http_server *server);
