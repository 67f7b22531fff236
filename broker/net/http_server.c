/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/net/http_server.h"

#include "broker/base/alloc.h"
#include "broker/base/err.h"
#include "broker/net/http_connection.h"
#include "broker/net/http_request.h"
#include "broker/net/loop.h"

#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* Bytes of request line and headers that a connection holds; RSS is about this an idle connection. */
#define CONNECTION_MEMORY_BYTES ((size_t)8192)
/* Runs of the daemon in one turn of the loop before others get theirs. */
#define RUNS_A_TURN 4
/* Memory goes back once a crowd of more than PEAK has shrunk to FEW. */
#define CROWD_PEAK 200
#define CROWD_FEW 8
/* Batches of connections that are still taken when the server drains. */
#define LAST_BATCHES 64
/* After HTTP_SERVER_DRAIN_MS the last answers get this long. */
#define DRAIN_LAST_MS 200

static void on_connection(void *cls, struct MHD_Connection *mhd, void **socket_context,
			  enum MHD_ConnectionNotificationCode code)
{
	struct http_server *const server = cls;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		/* Called inside MHD_add_connection(). */
		*socket_context = server->accepting;
		server->accepting->mhd = mhd;
		return;
	}
	struct http_connection *const connection = *socket_context;
	*socket_context = NULL;
	/* Taken and dropped at once, where no more can be watched: MHD_add_connection() says so too. */
	if (connection == server->accepting)
		return;
	/* One that cannot be watched any more ends without a word on its request. */
	if (connection->request)
		http_request_end(connection->request);
	http_connection_free(connection);
	http_server_ended(server);
}

/* The only place that runs the daemon. */
static void run(void *ctx)
{
	struct http_server *const server = ctx;

	for (int i = 0; i < RUNS_A_TURN; i++) {
		MHD_UNSIGNED_LONG_LONG timeout_ms;
		(void)MHD_run(server->daemon);
		if (MHD_get_timeout(server->daemon, &timeout_ms) != MHD_YES || timeout_ms > 0)
			return;
	}
	loop_defer_ready(server->more);
}

static void on_epoll(void *ctx, int fd, uint32_t events)
{
	(void)fd;
	(void)events;
	run(ctx);
}

void http_server_more(struct http_server *server)
{
	loop_defer_ready(server->more);
}

/*
 * From 1.0 on, a daemon that may be used by threads takes a connection only in its next run, and one
 * step stricter than the default its parser refuses folded lines. In 0.9.75 the strict parser answers
 * with two header blocks.
 */
#if MHD_VERSION >= 0x01000000
#define ONE_THREAD MHD_USE_NO_THREAD_SAFETY
#define STRICTNESS 1
#else
#define ONE_THREAD MHD_NO_FLAG
#define STRICTNESS 0
#endif

static struct MHD_Daemon *start_daemon(struct http_server *server)
{
	return MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET |
					MHD_ALLOW_SUSPEND_RESUME | ONE_THREAD,
				0, NULL, NULL, http_request_on_access, server,
				MHD_OPTION_NOTIFY_CONNECTION, on_connection, server,
				MHD_OPTION_NOTIFY_COMPLETED, http_request_on_completed, server,
				MHD_OPTION_URI_LOG_CALLBACK, http_request_on_target, server,
				MHD_OPTION_UNESCAPE_CALLBACK, http_request_unescape, server,
				MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY_BYTES,
				/* Limits and deadlines are ours: http_connection.c. */
				MHD_OPTION_CONNECTION_LIMIT,
				(unsigned)(server->max_connections + HTTP_MAX_DISPLACED),
				MHD_OPTION_CONNECTION_TIMEOUT, 0U, MHD_OPTION_STRICT_FOR_CLIENT,
				STRICTNESS, MHD_OPTION_END);
}

int http_server_new(const struct http_server_options *options, struct http_server **out,
		    struct err *err)
{
	struct http_server *const server = xcalloc(1, sizeof(*server));

	server->loop = options->loop;
	server->priority = options->priority;
	server->max_connections = options->max_connections;
	server->headers = options->headers;
	list_init(&server->listeners);
	server->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	server->more = loop_add_defer(server->loop, LOOP_PRIORITY_MORE, run, server);
	server->daemon = start_daemon(server);
	const union MHD_DaemonInfo *const info =
		server->daemon ? MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD) :
				 NULL;
	if (info)
		server->epoll = loop_add_io(server->loop, info->epoll_fd, EPOLLIN, server->priority,
					    on_epoll, server);
	if (!server->epoll) {
		http_server_free(server);
		return err_set(err, ERR_SYSTEM, "the HTTP server does not start");
	}
	*out = server;
	return 0;
}

void http_server_free(struct http_server *server)
{
	if (!server)
		return;
	if (server->daemon) {
		/*
		 * Requests that waited when their listener was closed are answered and resumed: here that
		 * takes effect. With a suspended connection MHD_stop_daemon() would abort.
		 */
		(void)MHD_run(server->daemon);
		(void)MHD_run(server->daemon);
		loop_source_free(server->epoll);
		MHD_stop_daemon(server->daemon);
	}
	/* Last: the end of the last connection sets it once more while the server drains. */
	timer_stop(loop_timers(server->loop), &server->drain_timer);
	loop_source_free(server->more);
	if (server->reserve_fd >= 0)
		close(server->reserve_fd);
	free(server);
}

bool http_server_adopt(struct http_server *server, struct http_connection *connection)
{
	static const struct sockaddr_in anywhere = {.sin_family = AF_INET};

	server->accepting = connection;
	/* The address is only for libmicrohttpd's own limits and policy, which are not used. */
	const enum MHD_Result added = MHD_add_connection(server->daemon, connection->fd,
							 (const struct sockaddr *)&anywhere,
							 sizeof(anywhere));
	server->accepting = NULL;
	if (added != MHD_YES)
		return false;
	server->connections++;
	if (server->connections > server->peak)
		server->peak = server->connections;
	return true;
}

static void finish_drain(struct timer *timer)
{
	struct http_server *const server = CONTAINER_OF(timer, struct http_server, drain_timer);

	server->drained(server->drained_ctx);
}

void http_server_ended(struct http_server *server)
{
	server->connections--;
	if (server->peak > CROWD_PEAK && server->connections <= CROWD_FEW) {
		server->peak = server->connections;
		memory_release();
	}
	if (server->draining && !server->connections)
		timer_set_after(loop_timers(server->loop), &server->drain_timer, 0, finish_drain);
}

/* Time is up: what still waits is told so, and gets a moment to be written. */
static void on_drain_over(struct timer *timer)
{
	struct http_server *const server = CONTAINER_OF(timer, struct http_server, drain_timer);

	list_for_each(link, &server->listeners)
		http_listener_dismiss(CONTAINER_OF(link, struct http_listener, link));
	timer_set_after(loop_timers(server->loop), timer, DRAIN_LAST_MS, finish_drain);
}

static void stop_listening(struct http_listener *listener)
{
	/* Who had connected before the end is still served, but nobody holds the end up. */
	for (int i = 0; i < LAST_BATCHES && http_listener_accept(listener); i++)
		;
	loop_io_set_enabled(listener->source, false);
	timer_stop(loop_timers(listener->server->loop), &listener->pause);
	/* Whoever asks from now on waits for the next process, where another one holds the queue for it. */
	if (!listener->shared)
		(void)shutdown(listener->fd, SHUT_RDWR);
}

void http_server_drain(struct http_server *server, void (*done)(void *ctx), void *ctx)
{
	server->drained = done;
	server->drained_ctx = ctx;
	list_for_each(link, &server->listeners)
		stop_listening(CONTAINER_OF(link, struct http_listener, link));
	run(server); /* what has arrived is answered */
	server->draining = true;
	list_for_each(l, &server->listeners) {
		struct http_listener *const listener = CONTAINER_OF(l, struct http_listener, link);
		list_for_each(c, &listener->connections) {
			struct http_connection *const connection =
				CONTAINER_OF(c, struct http_connection, link);
			if (connection->phase == HTTP_PHASE_IDLE ||
			    connection->phase == HTTP_PHASE_READING)
				http_connection_cut(connection);
		}
	}
	timer_set_after(loop_timers(server->loop), &server->drain_timer,
			server->connections ? HTTP_SERVER_DRAIN_MS : 0,
			server->connections ? on_drain_over : finish_drain);
}

size_t http_server_connections(const struct http_server *server)
{
	return server->connections;
}
