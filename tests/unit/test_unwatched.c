/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server where the kernel watches no more descriptors: nothing is lost, and nobody waits for ever. */
#include "broker/net/http_server.h"

#include "broker/base/err.h"
#include "broker/net/loop.h"
#include "tests/unit/epoll_fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

/* Longer than anything here takes. */
#define PATIENCE_MS 10000
/* What libmicrohttpd watches is edge-triggered, and nothing else is. */
#define OF_LIBMICROHTTPD EPOLLET

static struct loop *loop;
static struct http_server *server;
static struct http_listener *listener;
static struct http_response *plain;
static struct sockaddr_un address;
static socklen_t address_len;
static struct timer patience;

static struct {
	struct http_request *request; /* that waits */
	size_t requests;
	size_t gone; /* requests and streams whose client went away */
} got;

static void on_request(void *ctx, struct http_request *request)
{
	(void)ctx;
	got.requests++;
	got.request = request;
}

static void on_gone(void *ctx, struct http_request *request)
{
	(void)ctx;
	(void)request;
	got.gone++;
}

static void on_closing(void *ctx, struct http_request *request)
{
	(void)ctx;
	http_request_respond(request, plain);
}

static const struct http_handler handler = {
	.request = on_request,
	.gone = on_gone,
	.closing = on_closing,
};

static void on_stream_gone(void *ctx)
{
	(void)ctx;
	got.gone++;
}

static void on_late(struct timer *timer)
{
	(void)timer;
	fail_msg("nothing more happens");
}

static void turn(void)
{
	struct err err;

	assert_int_equal(loop_turn(loop, &err), 0);
}

static int listen_somewhere(void)
{
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		abort();
	/* The kernel finds an abstract name. */
	address = (struct sockaddr_un){.sun_family = AF_UNIX};
	address_len = sizeof(address);
	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(sa_family_t)), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &address_len), 0);
	return fd;
}

static int set_up(void **state)
{
	static const char *const none[] = {NULL};
	struct err err;

	(void)state;
	memset(&got, 0, sizeof(got));
	assert_int_equal(loop_new(&loop, &err), 0);
	const struct http_server_options options = {.loop = loop,
						    .max_connections = 8,
						    .headers = none};
	assert_int_equal(http_server_new(&options, &server, &err), 0);
	assert_int_equal(http_listener_new(server, listen_somewhere(), NULL, 8, &listener, &err),
			 0);
	http_listener_set_handler(listener, &handler, NULL);
	plain = http_response_new(server, 200, "text/plain", "ok", 2, HTTP_BODY_CONSTANT);
	timer_set_after(loop_timers(loop), &patience, PATIENCE_MS, on_late);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	epoll_refuse(0);
	timer_stop(loop_timers(loop), &patience);
	http_listener_close(listener);
	http_server_free(server);
	http_response_free(plain);
	loop_free(loop);
	return 0;
}

/* A client that has said this. */
static int client(const char *text)
{
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		abort();
	assert_int_equal(connect(fd, (const struct sockaddr *)&address, address_len), 0);
	assert_int_equal(send(fd, text, strlen(text), 0), strlen(text));
	return fd;
}

/* The same, once its request waits. */
static int waiting_client(const char *text)
{
	const size_t before = got.requests;
	const int fd = client(text);

	while (got.requests == before)
		turn();
	return fd;
}

/* Reads to the end; true where it was an answer. */
static bool ends_with_answer(int fd)
{
	char bytes[65536];
	bool answered = false;
	ssize_t n;

	for (size_t i = 0; (n = recv(fd, bytes, sizeof(bytes), 0)) > 0; i++)
		answered |= !i && n > 12 && !memcmp(bytes, "HTTP/1.1 200", 12);
	close(fd);
	return answered && !n;
}

static void a_connection_that_cannot_be_watched_ends_once(void **state)
{
	const int fd = client("");

	(void)state;
	epoll_refuse(OF_LIBMICROHTTPD);
	while (!epoll_refused())
		turn();
	epoll_refuse(0);
	assert_int_equal(http_server_connections(server), 0);
	assert_false(ends_with_answer(fd));
	/* And the next one is served. */
	const int next = waiting_client("GET / HTTP/1.0\r\n\r\n");
	assert_int_equal(http_server_connections(server), 1);
	http_request_respond(got.request, plain);
	while (http_server_connections(server))
		turn();
	assert_true(ends_with_answer(next));
}

/* The next request's line has come behind one that waited; libmicrohttpd forgets to say that it ends. */
static void a_request_whose_connection_cannot_be_watched_any_more_ends_with_it(void **state)
{
	const int fd =
		waiting_client("GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /next HTTP/1.1\r\nHost");

	(void)state;
	epoll_refuse(OF_LIBMICROHTTPD);
	http_request_respond(got.request, plain);
	while (http_server_connections(server))
		turn();
	assert_int_equal(epoll_refused(), 1);
	assert_true(ends_with_answer(fd));
	assert_int_equal(got.gone, 0);
}

static void a_stream_whose_connection_cannot_be_watched_any_more_ends_with_it(void **state)
{
	const int fd = waiting_client("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
	static char line[60000];

	(void)state;
	memset(line, 'x', sizeof(line) - 1);
	struct http_stream *const stream =
		http_request_respond_stream(got.request, 200, "text/plain", on_stream_gone, NULL);
	epoll_refuse(OF_LIBMICROHTTPD);
	/* The client reads nothing: at some time its socket takes no more, and would have to be watched. */
	while (!got.gone) {
		http_stream_write(stream, line);
		turn();
		turn();
	}
	while (http_server_connections(server))
		turn();
	assert_int_equal(epoll_refused(), 1);
	assert_int_equal(got.gone, 1);
	assert_true(ends_with_answer(fd));
}

static void a_stream_whose_client_cannot_be_watched_ends_at_once(void **state)
{
	const int fd = waiting_client("GET / HTTP/1.1\r\nHost: x\r\n\r\n");

	(void)state;
	epoll_refuse(EPOLLRDHUP);
	struct http_stream *const stream =
		http_request_respond_stream(got.request, 200, "text/plain", on_stream_gone, NULL);
	http_stream_write(stream, "a line\n");
	while (!got.gone)
		turn();
	while (http_server_connections(server))
		turn();
	assert_int_equal(got.gone, 1);
	assert_true(ends_with_answer(fd));
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(a_connection_that_cannot_be_watched_ends_once),
		CASE(a_request_whose_connection_cannot_be_watched_any_more_ends_with_it),
		CASE(a_stream_whose_connection_cannot_be_watched_any_more_ends_with_it),
		CASE(a_stream_whose_client_cannot_be_watched_ends_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
