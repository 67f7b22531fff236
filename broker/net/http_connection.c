/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/net/http_connection.h"

#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/base/clock.h"
#include "broker/net/http_date.h"
#include "broker/net/loop.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* Deadlines are kept to this step, so that many connections share a wake-up. */
#define DEADLINE_STEP_MS 250

static void on_deadline(struct timer *timer);
static void on_first_byte(void *ctx, int fd, uint32_t events);

static int64_t now_ms(const struct http_connection *connection)
{
	return clock_boot_ms(loop_timers(connection->server->loop)->clock);
}

struct http_connection *http_connection_new(struct http_listener *listener, int fd,
					    const struct address *peer)
{
	struct http_connection *const connection = xcalloc(1, sizeof(*connection));

	connection->listener = listener;
	connection->server = listener->server;
	connection->fd = fd;
	connection->peer = *peer;
	return connection;
}

void http_connection_free(struct http_connection *connection)
{
	timer_stop(loop_timers(connection->server->loop), &connection->timer);
	loop_source_free(connection->watch);
	if (list_linked(&connection->link)) {
		list_remove(&connection->link);
		http_listener_release(connection->listener, connection);
	}
	free(connection);
}

/*
 * Sets the timer only where it would come too late: one that comes early looks again and costs less
 * than a change at every request.
 */
static void wake_by(struct http_connection *connection, int64_t due_ms)
{
	const int64_t step_ms =
		(due_ms + DEADLINE_STEP_MS - 1) / DEADLINE_STEP_MS * DEADLINE_STEP_MS;

	if (!timer_is_set(&connection->timer) || connection->timer.due_ms > step_ms)
		timer_set(loop_timers(connection->server->loop), &connection->timer, step_ms,
			  on_deadline);
}

void http_connection_set_phase(struct http_connection *connection, enum http_phase phase)
{
	static const int64_t timeout_ms[] = {
		[HTTP_PHASE_READING] = HTTP_SERVER_REQUEST_TIMEOUT_MS,
		[HTTP_PHASE_WAITING] = 0, /* the handler's own */
		[HTTP_PHASE_WRITING] = HTTP_SERVER_WRITE_TIMEOUT_MS,
		[HTTP_PHASE_STREAMING] = 0,
		[HTTP_PHASE_IDLE] = HTTP_SERVER_IDLE_TIMEOUT_MS,
	};

	if (connection->watch) {
		loop_source_free(connection->watch);
		connection->watch = NULL;
	}
	connection->phase = phase;
	connection->since_ms = now_ms(connection);
	connection->deadline_ms = timeout_ms[phase] ? connection->since_ms + timeout_ms[phase] : 0;
	if (phase == HTTP_PHASE_IDLE)
		wake_by(connection, connection->since_ms + DEADLINE_STEP_MS);
	else if (connection->deadline_ms)
		wake_by(connection, connection->deadline_ms);
}

void http_connection_cut(struct http_connection *connection)
{
	(void)shutdown(connection->fd, SHUT_RDWR);
	http_server_more(connection->server);
}

static void reset_on_close(const struct http_connection *connection)
{
	const struct linger linger = {.l_onoff = 1, .l_linger = 0};

	(void)setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

/* True where bytes have come that belong to no request answered so far. */
static bool has_partial_request(const struct http_connection *connection)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	if (getsockopt(connection->fd, IPPROTO_TCP, TCP_INFO, &info, &len) ||
	    len < offsetof(struct tcp_info, tcpi_bytes_received) + sizeof(info.tcpi_bytes_received))
		return false;
	return info.tcpi_bytes_received > connection->consumed_bytes;
}

/* The request's time counts from its first byte, which came at `since_ms` or later. */
static void begin_reading(struct http_connection *connection, int64_t since_ms)
{
	http_connection_set_phase(connection, HTTP_PHASE_READING);
	connection->deadline_ms = since_ms + HTTP_SERVER_REQUEST_TIMEOUT_MS;
	wake_by(connection, connection->deadline_ms);
}

/*
 * The client has said that no more will come. libmicrohttpd misses that where it came together with
 * the request's last bytes.
 */
static bool is_over(const struct http_connection *connection)
{
	char byte;

	return recv(connection->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/*
 * libmicrohttpd does not tell when a next request begins. A connection that rests gets a watch of ours;
 * what came before the watch shows in the kernel's count of bytes.
 */
static void watch_idle(struct http_connection *connection)
{
	if (is_over(connection)) {
		http_connection_cut(connection);
		return;
	}
	if (!has_partial_request(connection))
		connection->watch = loop_add_io(connection->server->loop, connection->fd, EPOLLIN,
						connection->server->priority, on_first_byte,
						connection);
	if (!connection->watch)
		begin_reading(connection, connection->since_ms);
}

static void on_first_byte(void *ctx, int fd, uint32_t events)
{
	struct http_connection *const connection = ctx;

	(void)fd;
	(void)events;
	if (is_over(connection)) {
		loop_source_free(connection->watch);
		connection->watch = NULL;
		http_connection_cut(connection);
		return;
	}
	begin_reading(connection, now_ms(connection));
}

static void expire(struct http_connection *connection)
{
	const struct http_listener *const listener = connection->listener;

	if (connection->phase == HTTP_PHASE_READING) {
		if (listener->server && listener->handler->limit)
			listener->handler->limit(listener->handler_ctx, HTTP_LIMIT_SLOW,
						 &connection->peer);
		http_connection_send_refusal(connection->server, connection->fd, 408);
	} else if (connection->phase == HTTP_PHASE_WRITING) {
		reset_on_close(connection);
	}
	connection->deadline_ms = 0;
	http_connection_cut(connection);
}

static void on_deadline(struct timer *timer)
{
	struct http_connection *const connection =
		CONTAINER_OF(timer, struct http_connection, timer);
	const int64_t now = now_ms(connection);

	if (connection->deadline_ms && now >= connection->deadline_ms) {
		expire(connection);
		return;
	}
	if (connection->phase == HTTP_PHASE_IDLE && !connection->watch) {
		if (now >= connection->since_ms + DEADLINE_STEP_MS)
			watch_idle(connection);
		else
			wake_by(connection, connection->since_ms + DEADLINE_STEP_MS);
	}
	if (connection->deadline_ms)
		wake_by(connection, connection->deadline_ms);
}

void http_connection_send_refusal(const struct http_server *server, int fd, unsigned status)
{
	static const struct {
		unsigned status;
		const char *line;
		const char *more;
		const char *body;
	} refusals[] = {
		{408, "408 Request Timeout", "", "Request Timeout.\n"},
		{503, "503 Service Unavailable", "Retry-After: 1\r\n", "Too many connections.\n"},
	};
	char date[HTTP_DATE_SIZE];
	AUTO_BUF struct buf answer;
	size_t i = 0;

	while (refusals[i].status != status)
		i++;
	buf_init(&answer, 4096);
	http_date_format(date, clock_wall_ms(loop_timers(server->loop)->clock));
	buf_addf(&answer,
		 "HTTP/1.1 %s\r\nDate: %s\r\nConnection: close\r\n%s"
		 "Content-Type: text/plain\r\nContent-Length: %zu\r\n",
		 refusals[i].line, date, refusals[i].more, strlen(refusals[i].body));
	for (const char *const *h = server->headers; h[0]; h += 2)
		buf_addf(&answer, "%s: %s\r\n", h[0], h[1]);
	buf_addf(&answer, "\r\n%s", refusals[i].body);
	(void)send(fd, answer.data, answer.len, MSG_NOSIGNAL | MSG_DONTWAIT);
}
