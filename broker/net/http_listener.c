/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/net/http_connection.h"

#include "broker/base/alloc.h"
#include "broker/base/err.h"
#include "broker/net/http_stream.h"
#include "broker/net/loop.h"
#include "broker/net/shared_accept.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* How long accepting rests where the machine has nothing left to accept with. */
#define PAUSE_MS 100
/* What the kernel may keep of an answer that nobody acknowledges. */
#define UNACKED_TIMEOUT_MS 10000

static void on_ready(void *ctx, int fd, uint32_t events)
{
	(void)fd;
	(void)events;
	(void)http_listener_accept(ctx);
}

int http_listener_new(struct http_server *server, int takes_fd, const struct address *local,
		      size_t max_connections, struct http_listener **out, struct err *err)
{
	struct http_listener *const listener = xcalloc(1, sizeof(*listener));

	listener->server = server;
	listener->fd = takes_fd;
	listener->max_connections = max_connections;
	list_init(&listener->connections);
	if (local) {
		listener->local = *local;
		listener->has_local = true;
	}
	listener->source =
		loop_add_io(server->loop, takes_fd, EPOLLIN, server->priority, on_ready, listener);
	if (!listener->source) {
		(void)err_set_errno(err, errno, "watching a listening socket");
		close(takes_fd);
		free(listener);
		return -1;
	}
	list_append(&server->listeners, &listener->link);
	*out = listener;
	return 0;
}

void http_listener_set_handler(struct http_listener *listener, const struct http_handler *handler,
			       void *ctx)
{
	listener->handler = handler;
	listener->handler_ctx = ctx;
}

void http_listener_share(struct http_listener *listener, const struct http_listener *twin)
{
	shared_accept_prepare(listener->fd);
	listener->shared = true;
	listener->twin = twin;
}

void http_listener_set_max_body(struct http_listener *listener, size_t max_bytes)
{
	listener->max_body_bytes = max_bytes;
}

void http_listener_set_max_connections(struct http_listener *listener, size_t max_connections)
{
	listener->max_connections = max_connections;
}

void http_listener_release(struct http_listener *listener, const struct http_connection *connection)
{
	listener->count--;
	listener->displaced -= connection->displaced;
	connection->server->displaced -= connection->displaced;
	if (!listener->server && !listener->count)
		free(listener);
}

void http_listener_dismiss(struct http_listener *listener)
{
	list_for_each(link, &listener->connections) {
		struct http_connection *const connection =
			CONTAINER_OF(link, struct http_connection, link);
		if (connection->phase == HTTP_PHASE_WAITING)
			listener->handler->closing(listener->handler_ctx, connection->request);
		else if (connection->phase == HTTP_PHASE_STREAMING)
			http_stream_close(http_request_stream(connection->request));
		else if (connection->phase != HTTP_PHASE_WRITING)
			http_connection_cut(connection);
	}
}

void http_listener_close(struct http_listener *listener)
{
	if (!listener)
		return;
	struct http_server *const server = listener->server;

	loop_source_free(listener->source);
	if (listener->shared && server->draining)
		shared_accept_leave(listener->fd);
	else if (listener->shared)
		shared_accept_close(listener->fd);
	else
		close(listener->fd);
	timer_stop(loop_timers(server->loop), &listener->pause);
	list_remove(&listener->link);
	http_listener_dismiss(listener);
	listener->server = NULL;
	if (!listener->count)
		free(listener);
}

static void on_pause_over(struct timer *timer)
{
	struct http_listener *const listener = CONTAINER_OF(timer, struct http_listener, pause);

	loop_io_set_enabled(listener->source, true);
}

static bool is_exhausted(int errnum)
{
	return errnum == EMFILE || errnum == ENFILE || errnum == ENOBUFS || errnum == ENOMEM;
}

static int accept_one(const struct http_listener *listener, struct sockaddr *sa, socklen_t *len)
{
	return listener->shared ? shared_accept(listener->fd, sa, len) :
				  accept4(listener->fd, sa, len, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

/*
 * Out of descriptors a level-triggered socket would spin: the reserve is given up to refuse one client,
 * then accepting rests a moment.
 */
static void refuse_one(struct http_listener *listener)
{
	struct http_server *const server = listener->server;

	if (server->reserve_fd >= 0) {
		close(TAKE_FD(server->reserve_fd));
		AUTO_CLOSE const int fd = accept_one(listener, NULL, NULL);
		if (fd >= 0 && !listener->shared)
			http_connection_send_refusal(server, fd, 503);
	}
	server->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	loop_io_set_enabled(listener->source, false);
	timer_set_after(loop_timers(server->loop), &listener->pause, PAUSE_MS, on_pause_over);
}

static void note_peer(struct http_connection *connection)
{
	const int unacked_ms = UNACKED_TIMEOUT_MS;
	const struct http_listener *const listener = connection->listener;
	struct sockaddr_storage sa;
	socklen_t sa_len = sizeof(sa);
	struct address local;
	struct ucred ucred;
	socklen_t len = sizeof(ucred);

	if (!listener->has_local) {
		if (!getsockopt(connection->fd, SOL_SOCKET, SO_PEERCRED, &ucred, &len)) {
			connection->peer_uid = ucred.uid;
			connection->peer_gid = ucred.gid;
			connection->peer_pid = ucred.pid;
		}
		return;
	}
	(void)setsockopt(connection->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacked_ms,
			 sizeof(unacked_ms));
	local = listener->local;
	if (address_is_wildcard(&local) &&
	    (getsockname(connection->fd, (struct sockaddr *)&sa, &sa_len) ||
	     address_from_sockaddr(&local, (const struct sockaddr *)&sa, sa_len)))
		local = listener->local;
	(void)address_format_ip(&local, connection->local_ip);
}

/*
 * A socket of the file system has no room of its own for each client: one user gets half of it, and
 * streams, which their owner bounds, take none.
 */
static bool has_room_for_user(const struct http_listener *listener, uid_t uid)
{
	size_t all = 0;
	size_t own = 0;

	list_for_each(link, &listener->connections) {
		const struct http_connection *const connection =
			CONTAINER_OF(link, struct http_connection, link);
		if (connection->request && http_request_stream(connection->request))
			continue;
		all++;
		own += connection->peer_uid == uid;
	}
	return all < listener->max_connections && own < (listener->max_connections + 1) / 2;
}

static bool is_favoured(const struct http_listener *listener, const struct address *peer)
{
	return listener->handler->favours &&
	       listener->handler->favours(listener->handler_ctx, peer);
}

/* What rests ends for another rather than what has begun. */
static int loss_of(const struct http_connection *connection)
{
	switch (connection->phase) {
	case HTTP_PHASE_IDLE:
		return 0;
	case HTTP_PHASE_READING:
		return 1;
	case HTTP_PHASE_WAITING:
	case HTTP_PHASE_WRITING:
	case HTTP_PHASE_STREAMING:
		break;
	}
	return 2;
}

/* The stranger's connection that is the least loss, of several the oldest; NULL where there is none. */
static struct http_connection *find_stranger(const struct http_listener *listener)
{
	struct http_connection *least = NULL;

	list_for_each(link, &listener->connections) {
		struct http_connection *const connection =
			CONTAINER_OF(link, struct http_connection, link);
		if (connection->displaced || (least && loss_of(connection) >= loss_of(least)) ||
		    !listener->handler->favours || is_favoured(listener, &connection->peer))
			continue;
		least = connection;
	}
	return least;
}

/* The same at whichever endpoint. */
static struct http_connection *find_stranger_anywhere(const struct http_server *server)
{
	struct http_connection *least = NULL;

	list_for_each(link, &server->listeners) {
		struct http_connection *const connection =
			find_stranger(CONTAINER_OF(link, struct http_listener, link));
		if (connection && (!least || loss_of(connection) < loss_of(least)))
			least = connection;
	}
	return least;
}

/*
 * A stranger that keeps connections open, or one request behind another, keeps the sandbox out no longer
 * than until it comes.
 */
static bool displace(struct http_connection *stranger)
{
	if (!stranger)
		return false;
	stranger->displaced = true;
	stranger->listener->displaced++;
	stranger->server->displaced++;
	http_connection_cut(stranger);
	return true;
}

/* Without those that are about to end. */
static size_t held(const struct http_listener *listener)
{
	return listener->count - listener->displaced;
}

static bool has_room_for(const struct http_connection *connection)
{
	const struct http_listener *const listener = connection->listener;
	const struct http_server *const server = listener->server;
	const bool server_full = server->connections - server->displaced >= server->max_connections;

	if (!listener->has_local)
		return !server_full && has_room_for_user(listener, connection->peer_uid);
	const bool full = held(listener) + (listener->twin ? held(listener->twin) : 0) >=
			  listener->max_connections;
	if (!full && !server_full)
		return true;
	return server->displaced < HTTP_MAX_DISPLACED && is_favoured(listener, &connection->peer) &&
	       displace(full ? find_stranger(listener) : find_stranger_anywhere(server));
}

static void take(struct http_listener *listener, int fd, const struct address *peer)
{
	struct http_server *const server = listener->server;
	struct http_connection *const connection = http_connection_new(listener, fd, peer);

	note_peer(connection);
	if (!has_room_for(connection)) {
		if (listener->handler->limit)
			listener->handler->limit(listener->handler_ctx, HTTP_LIMIT_CONNECTIONS,
						 peer);
		http_connection_send_refusal(server, fd, 503);
		close(fd);
		http_connection_free(connection);
		return;
	}
	if (!http_server_adopt(server, connection)) {
		http_connection_free(connection);
		return;
	}
	list_append(&listener->connections, &connection->link);
	listener->count++;
	http_connection_set_phase(connection, HTTP_PHASE_READING);
}

static void on_lost(struct timer *timer)
{
	const struct http_listener *const listener =
		CONTAINER_OF(timer, struct http_listener, pause);

	listener->handler->lost(listener->handler_ctx);
}

/* Later: whoever hears of it closes the listener. */
static void lose(struct http_listener *listener)
{
	loop_io_set_enabled(listener->source, false);
	timer_set_after(loop_timers(listener->server->loop), &listener->pause, 0, on_lost);
}

static void accept_failed(struct http_listener *listener, int errnum)
{
	if (is_exhausted(errnum))
		refuse_one(listener);
	else if (listener->shared && errnum != EAGAIN && errnum != ECONNABORTED)
		lose(listener);
}

static bool is_foreign(const struct http_listener *listener, int fd, const struct address *peer)
{
	return listener->shared && !shared_accept_is_local(fd, peer, &listener->local);
}

bool http_listener_accept(struct http_listener *listener)
{
	struct http_server *const server = listener->server;

	bool more = true;

	for (int i = 0; more && i < HTTP_ACCEPT_BATCH; i++) {
		struct sockaddr_storage sa = {0};
		socklen_t len = sizeof(sa);
		struct address peer = {0};
		const int fd = accept_one(listener, (struct sockaddr *)&sa, &len);
		if (fd < 0) {
			accept_failed(listener, errno);
			more = false;
			continue;
		}
		if (listener->has_local &&
		    address_from_sockaddr(&peer, (const struct sockaddr *)&sa, len)) {
			close(fd);
			continue;
		}
		if (is_foreign(listener, fd, &peer)) {
			listener->handler->limit(listener->handler_ctx, HTTP_LIMIT_FOREIGN, &peer);
			close(fd);
			continue;
		}
		take(listener, fd, &peer);
	}
	http_server_more(server);
	return more;
}
