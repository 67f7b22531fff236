/* SPDX-License-Identifier: Apache-2.0 */
/* Calls over a real socket, where the kernel does not do as it should. */
#include "broker/net/http_client.h"

#include "broker/base/alloc.h"
#include "broker/base/clock.h"
#include "broker/base/err.h"
#include "broker/net/address.h"
#include "broker/net/http_server.h"
#include "broker/net/listen.h"
#include "broker/net/loop.h"
#include "tests/unit/epoll_fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cmocka.h>

/* Longer than anything here takes. */
#define PATIENCE_MS 10000

static struct loop *loop;
static struct http_server *server;
static struct http_listener *listener;
static struct http_response *plain;
static struct http_client *client;
static char *url;
static struct timer patience;

/* What came of a call. */
struct outcome {
	size_t answers;
	enum http_failure failure;
	char text[128];
	long status;
};

static void on_request(void *ctx, struct http_request *request)
{
	(void)ctx;
	http_request_respond(request, plain);
}

static const struct http_handler handler = {.request = on_request};

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

static void open_server(void)
{
	static const char *const none[] = {NULL};
	const struct http_server_options options = {.loop = loop,
						    .max_connections = 8,
						    .headers = none};
	char text[ADDRESS_TEXT_SIZE];
	struct address address;
	struct err err;
	int fd;

	assert_int_equal(address_parse(&address, "127.0.0.1:0"), 0);
	assert_int_equal(listen_tcp(&address, &fd, &err), 0);
	assert_int_equal(http_server_new(&options, &server, &err), 0);
	assert_int_equal(http_listener_new(server, fd, &address, 8, &listener, &err), 0);
	http_listener_set_handler(listener, &handler, NULL);
	plain = http_response_new(server, 200, "text/plain", "ok", 2, HTTP_BODY_CONSTANT);
	url = xasprintf("http://%s/", address_format(&address, text));
}

static int set_up(void **state)
{
	const struct http_client_options options = {.user_agent = "test"};
	struct err err;

	(void)state;
	assert_int_equal(loop_new(&loop, &err), 0);
	open_server();
	assert_int_equal(http_client_new(loop, &options, &client, &err), 0);
	timer_set_after(loop_timers(loop), &patience, PATIENCE_MS, on_late);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	epoll_refuse(0);
	timer_stop(loop_timers(loop), &patience);
	http_client_free(client);
	http_listener_close(listener);
	http_server_free(server);
	http_response_free(plain);
	free(url);
	loop_free(loop);
	return 0;
}

static void done(void *ctx, const struct http_answer *answer)
{
	struct outcome *const outcome = ctx;

	outcome->answers++;
	outcome->failure = answer->failure;
	outcome->status = answer->status;
	(void)snprintf(outcome->text, sizeof(outcome->text), "%s", answer->failure_text);
}

static struct http_call *start(struct outcome *outcome)
{
	const struct http_client_request request = {.method = "GET", .url = url};

	*outcome = (struct outcome){0};
	return http_client_start(client, &request, done, outcome);
}

static void a_call_whose_socket_cannot_be_watched_fails_alone(void **state)
{
	struct outcome lost;
	struct outcome cancelled;
	struct outcome good;

	(void)state;
	epoll_refuse(EPOLLOUT);
	(void)start(&lost);
	struct http_call *const call = start(&cancelled);
	while (epoll_refused() < 2)
		turn();
	epoll_refuse(0);
	(void)start(&good);
	http_call_cancel(call);
	while (!good.answers || !lost.answers)
		turn();
	assert_int_equal(good.failure, HTTP_FAILURE_NONE);
	assert_int_equal(good.status, 200);
	assert_int_equal(lost.failure, HTTP_FAILURE_OTHER);
	assert_string_equal(lost.text, "its socket cannot be watched");
	/* And nothing is told twice. */
	(void)start(&good);
	while (!good.answers)
		turn();
	assert_int_equal(good.answers, 1);
	assert_int_equal(lost.answers, 1);
	assert_int_equal(cancelled.answers, 0);
}

static void a_call_of_a_silent_server_ends_in_time(void **state)
{
	struct http_client_request request = {.method = "GET", .timeout_ms = 200};
	const int64_t since_ms = clock_boot_ms(clock_system());
	char text[ADDRESS_TEXT_SIZE];
	struct outcome late = {0};
	struct address address;
	struct err err;
	int fd;

	(void)state;
	/* The kernel accepts for it. */
	assert_int_equal(address_parse(&address, "127.0.0.1:0"), 0);
	assert_int_equal(listen_tcp(&address, &fd, &err), 0);
	char *const silent = xasprintf("http://%s/", address_format(&address, text));
	request.url = silent;
	assert_non_null(http_client_start(client, &request, done, &late));
	while (!late.answers)
		turn();
	assert_int_equal(late.failure, HTTP_FAILURE_TIMEOUT);
	assert_true(clock_boot_ms(clock_system()) - since_ms >= request.timeout_ms);
	/* The contract's, where a call names none. */
	assert_int_equal(HTTP_CLIENT_CALL_TIMEOUT_MS, 30000);
	free(silent);
	close(fd);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(a_call_whose_socket_cannot_be_watched_fails_alone),
		CASE(a_call_of_a_silent_server_ends_in_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
