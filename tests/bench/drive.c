/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A load driver for what wrk cannot do: sockets of the file system, a crowd that comes at once, and the
 * time of every single answer. One thread, one epoll.
 *
 * The request comes on standard input, byte for byte. Says one JSON object on standard output.
 */
#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/base/compiler.h"
#include "broker/base/parse.h"
#include "tests/bench/answer.h"
#include "tests/bench/dial.h"
#include "tests/bench/samples.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define REQUEST_MAX_BYTES ((size_t)4096)
#define EVENTS_A_TURN 256
#define TURN_MS 100
/* Without an answer for so long nothing more will come. */
#define STALLED_NS INT64_C(30000000000)
#define NS_PER_MS INT64_C(1000000)

struct client {
	int fd;
	bool connecting;
	int64_t begun_ns;
	size_t len;
	char data[ANSWER_MAX_BYTES];
};

struct driver {
	struct dial dial;
	struct buf request;
	uint64_t connections;
	uint64_t requests; /* 0: until the time is over */
	uint64_t milliseconds;
	uint64_t status;
	bool close; /* a connection for each request */
	const char *trace;

	int epoll;
	struct client *clients;
	uint64_t begun; /* requests */
	uint64_t failed;
	uint64_t open; /* connections */
	int64_t start_ns;
	int64_t last_ns;
	struct samples samples;
};

static bool may_begin(const struct driver *driver)
{
	if (driver->requests)
		return driver->begun < driver->requests;
	return samples_now_ns() - driver->start_ns < (int64_t)driver->milliseconds * NS_PER_MS;
}

static void hang_up(struct driver *driver, struct client *client)
{
	close(client->fd);
	client->fd = -1;
	driver->open--;
}

static void fail(struct driver *driver, struct client *client)
{
	driver->failed++;
	hang_up(driver, client);
}

static void ask(struct driver *driver, struct client *client)
{
	client->len = 0;
	if (write(client->fd, driver->request.data, driver->request.len) !=
	    (ssize_t)driver->request.len)
		fail(driver, client);
}

/* The first event tells that the connection is there, or why not. */
static void call(struct driver *driver, struct client *client)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLOUT, .data.ptr = client};

	driver->begun++;
	client->begun_ns = samples_now_ns();
	client->fd = dial_begin(&driver->dial);
	client->connecting = true;
	if (client->fd < 0) {
		driver->failed++;
		return;
	}
	driver->open++;
	if (epoll_ctl(driver->epoll, EPOLL_CTL_ADD, client->fd, &event))
		fail(driver, client);
}

static void connected(struct driver *driver, struct client *client)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};

	client->connecting = false;
	if (epoll_ctl(driver->epoll, EPOLL_CTL_MOD, client->fd, &event))
		fail(driver, client);
	else
		ask(driver, client);
}

static void answered(struct driver *driver, struct client *client)
{
	if (answer_status(client->data, client->len) != driver->status) {
		driver->failed++;
	} else {
		driver->last_ns = samples_add(&driver->samples, client->begun_ns);
	}
	if (driver->close || !may_begin(driver)) {
		hang_up(driver, client);
		if (driver->close && may_begin(driver))
			call(driver, client);
		return;
	}
	driver->begun++;
	client->begun_ns = samples_now_ns();
	ask(driver, client);
}

static void receive(struct driver *driver, struct client *client)
{
	const ssize_t got =
		read(client->fd, &client->data[client->len], sizeof(client->data) - client->len);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		fail(driver, client);
		return;
	}
	client->len += (size_t)got;
	if (answer_length(client->data, client->len))
		answered(driver, client);
	else if (client->len == sizeof(client->data))
		fail(driver, client);
}

static int run(struct driver *driver)
{
	struct epoll_event events[EVENTS_A_TURN];

	driver->start_ns = driver->last_ns = samples_now_ns();
	for (uint64_t i = 0; i < driver->connections && may_begin(driver); i++)
		call(driver, &driver->clients[i]);
	while (driver->open) {
		const int count = epoll_wait(driver->epoll, events, EVENTS_A_TURN, TURN_MS);
		if (count < 0 && errno != EINTR)
			return -1;
		for (int i = 0; i < count; i++) {
			struct client *const client = events[i].data.ptr;
			if (client->connecting)
				connected(driver, client);
			else
				receive(driver, client);
		}
		if (samples_now_ns() - driver->last_ns > STALLED_NS) {
			errno = ETIMEDOUT;
			return -1;
		}
	}
	return 0;
}

static void report(struct driver *driver)
{
	const double seconds = (double)(driver->last_ns - driver->start_ns) / 1e9;

	printf("{\"answers\":%zu,\"failed\":%llu,", driver->samples.count,
	       (unsigned long long)driver->failed);
	samples_print(&driver->samples, "");
	printf("\"seconds\":%.6f}\n", seconds);
}

static int read_request(struct buf *request)
{
	char data[REQUEST_MAX_BYTES];
	size_t len = 0;

	for (;;) {
		const ssize_t got = read(STDIN_FILENO, &data[len], sizeof(data) - len);
		if (got < 0 || len == sizeof(data))
			return -1;
		if (!got)
			break;
		len += (size_t)got;
	}
	return len ? buf_append(request, data, len) : -1;
}

static const char usage[] =
	"usage: drive [--connections N] [--requests N | --milliseconds N] [--status N]\n"
	"             [--close] [--trace FILE] ADDRESS:PORT|PATH <REQUEST\n";

static int read_options(struct driver *driver, int argc, char **argv)
{
	static const struct option options[] = {
		{"connections", required_argument, NULL, 'c'},
		{"requests", required_argument, NULL, 'n'},
		{"milliseconds", required_argument, NULL, 'm'},
		{"status", required_argument, NULL, 's'},
		{"close", no_argument, NULL, 'x'},
		{"trace", required_argument, NULL, 't'},
		{0},
	};
	uint64_t *numbers[] = {
		['c'] = &driver->connections,
		['n'] = &driver->requests,
		['m'] = &driver->milliseconds,
		['s'] = &driver->status,
	};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (option == '?')
			return -1;
		if (option == 'x')
			driver->close = true;
		else if (option == 't')
			driver->trace = optarg;
		else if (parse_uint(optarg, 1, INT32_MAX, numbers[option]))
			return -1;
	}
	return argc - optind == 1 ? dial_init(&driver->dial, argv[optind]) : -1;
}

int main(int argc, char **argv)
{
	struct driver driver = {.connections = 1, .milliseconds = 1000, .status = 200};
	int status = EXIT_SUCCESS;

	buf_init(&driver.request, REQUEST_MAX_BYTES);
	if (read_options(&driver, argc, argv) || read_request(&driver.request)) {
		(void)fputs(usage, stderr);
		return 2;
	}
	driver.clients = xcalloc(driver.connections, sizeof(driver.clients[0]));
	driver.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (driver.epoll < 0 || run(&driver)) {
		perror("drive");
		status = EXIT_FAILURE;
	} else if (driver.trace && samples_write(&driver.samples, driver.trace)) {
		perror(driver.trace);
		status = EXIT_FAILURE;
	} else {
		report(&driver);
	}
	samples_deinit(&driver.samples);
	free(driver.clients);
	buf_deinit(&driver.request);
	if (driver.epoll >= 0)
		close(driver.epoll);
	return status;
}
