/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/net/http_server.h"

#include "broker/base/err.h"
#include "broker/net/loop.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#define PATIENCE_MS 2000

#define BYTES(text) (text), sizeof(text) - 1

static const struct {
	const char *what;
	const char *bytes;
	size_t len;
	bool plain;
} cases[] = {
	{"a plain request",
	 BYTES("GET /a/b%40c?d=e&f HTTP/1.1\r\nHost: x:1\r\nMetadata-Flavor: \tGoogle \r\nEmpty:\r\n\r\n"),
	 true},
	{"a plain request without headers", BYTES("GET / HTTP/1.0\r\n\r\n"), true},
	{"a folded header",
	 BYTES("GET / HTTP/1.1\r\nHost: x\r\nMetadata-Fla: Google\r\n vor\r\n\r\n"), false},
	{"a line that ends in LF",
	 BYTES("GET / HTTP/1.1\nHost: x\r\nMetadata-Flavor: Google\r\n\r\n"), false},
	{"a blank before a colon", BYTES("GET / HTTP/1.1\r\nMetadata-Flavor : Google\r\n\r\n"),
	 false},
	{"a blank before a name", BYTES("GET / HTTP/1.1\r\n Metadata-Flavor: Google\r\n\r\n"),
	 false},
	{"a NUL in a value", BYTES("GET / HTTP/1.1\r\nMetadata-Flavor: Google\0x\r\n\r\n"), false},
	{"a CR in a value", BYTES("GET / HTTP/1.1\r\nMetadata-Flavor: Google\rx: y\r\n\r\n"),
	 false},
	{"a header without a name", BYTES("GET / HTTP/1.1\r\n: x\r\nHost: x\r\n\r\n"), false},
	{"two blanks before the target", BYTES("GET  / HTTP/1.1\r\nHost: x\r\n\r\n"), false},
};

struct self_test {
	struct loop *loop;
	struct timer timer; /* patience with one case */
	struct http_response *plain;
	struct http_response *refused;
	struct sockaddr_un address;
	socklen_t address_len;
	size_t index; /* of the case under way */
	int fd;	      /* its client, or -1 */
	struct loop_source *source;
};

static void start_case(struct self_test *test);

static void on_request(void *ctx, struct http_request *request)
{
	const struct self_test *const test = ctx;

	http_request_respond(request,
			     http_request_malformed(request) ? test->refused : test->plain);
}

static void on_gone(void *ctx, struct http_request *request)
{
	(void)ctx;
	(void)request;
}

static void end_case(struct self_test *test, bool accepted)
{
	timer_stop(loop_timers(test->loop), &test->timer);
	loop_source_free(test->source);
	test->source = NULL;
	if (test->fd >= 0)
		close(TAKE_FD(test->fd));
	if (accepted != cases[test->index].plain)
		loop_exit(test->loop, 1);
	else if (++test->index == ARRAY_LEN(cases))
		loop_exit(test->loop, 0);
	else
		start_case(test);
}

static void on_timeout(struct timer *timer)
{
	struct self_test *const test = CONTAINER_OF(timer, struct self_test, timer);

	/* Silence is neither verdict. */
	end_case(test, !cases[test->index].plain);
}

static void on_answer(void *ctx, int fd, uint32_t events)
{
	static const char good[] = " 204 ";
	char answer[64] = "";

	(void)events;
	const ssize_t n = recv(fd, answer, sizeof(answer) - 1, MSG_DONTWAIT);
	end_case(ctx, n > 8 && !strncmp(answer + strlen("HTTP/1.1"), good, sizeof(good) - 1));
}

static void start_case(struct self_test *test)
{
	timer_set_after(loop_timers(test->loop), &test->timer, PATIENCE_MS, on_timeout);
	test->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (test->fd < 0 ||
	    connect(test->fd, (const struct sockaddr *)&test->address, test->address_len) ||
	    send(test->fd, cases[test->index].bytes, cases[test->index].len, MSG_NOSIGNAL) < 0) {
		timer_set_after(loop_timers(test->loop), &test->timer, 0, on_timeout);
		return;
	}
	test->source =
		loop_add_io(test->loop, test->fd, EPOLLIN, LOOP_PRIORITY_NORMAL, on_answer, test);
}

/* A listening socket under a name that the kernel chooses and no file system holds. */
static int listen_somewhere(struct self_test *test)
{
	AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	test->address = (struct sockaddr_un){.sun_family = AF_UNIX};
	test->address_len = sizeof(test->address);
	if (fd < 0 ||
	    bind(fd, (const struct sockaddr *)&test->address, sizeof(test->address.sun_family)) ||
	    listen(fd, 8) || getsockname(fd, (struct sockaddr *)&test->address, &test->address_len))
		return -1;
	return TAKE_FD(fd);
}

static int run_cases(struct self_test *test, struct http_server *server, struct err *err)
{
	static const struct http_handler handler = {.request = on_request,
						    .gone = on_gone,
						    .closing = on_gone};
	struct http_listener *listener;

	const int fd = listen_somewhere(test);
	if (fd < 0)
		return err_set_errno(err, errno, "self-test of the HTTP server");
	if (http_listener_new(server, fd, NULL, 4, &listener, err))
		return -1;
	http_listener_set_handler(listener, &handler, test);
	test->plain = http_response_new(server, 204, "text/plain", "", 0, HTTP_BODY_CONSTANT);
	test->refused = http_response_new(server, 400, "text/plain", "", 0, HTTP_BODY_CONSTANT);
	http_response_set_close(test->refused);
	start_case(test);
	const int verdict = loop_run(test->loop, err);
	http_listener_close(listener);
	if (verdict > 0)
		(void)err_set(err, ERR_UNSUPPORTED,
			      "self-test of the HTTP server: this libmicrohttpd judges %s wrongly; "
			      "postern does not run on it",
			      cases[test->index].what);
	return verdict ? -1 : 0;
}

int http_server_self_test(struct err *err)
{
	static const char *const headers[] = {NULL};
	struct self_test test = {.fd = -1};
	struct http_server *server = NULL;

	if (loop_new(&test.loop, err))
		return -1;
	const struct http_server_options options = {.loop = test.loop,
						    .max_connections = ARRAY_LEN(cases) + 1,
						    .headers = headers};
	int result = http_server_new(&options, &server, err);
	if (!result)
		result = run_cases(&test, server, err);
	http_response_free(test.plain);
	http_response_free(test.refused);
	http_server_free(server);
	loop_free(test.loop);
	return result;
}
