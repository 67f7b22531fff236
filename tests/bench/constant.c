/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libmicrohttpd answering a constant: what the library alone costs, in one thread and the barest loop.
 * (With a thread of its own 0.9.75 leaves some of 256 connections without an answer.)
 *
 * usage: constant PORT BODY; ends by a signal.
 */
#include "broker/base/compiler.h"
#include "broker/base/parse.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* As posternd has it. */
#define CONNECTION_MEMORY_BYTES ((size_t)8192)
#define MAX_CONNECTIONS 2048U
#define BACKLOG 4096

static enum MHD_Result on_access(void *cls, struct MHD_Connection *connection, const char *url,
				 const char *method, const char *version, const char *upload_data,
				 size_t *upload_data_size, void **con_cls)
{
	struct MHD_Response *const response = cls;

	(void)url;
	(void)method;
	(void)version;
	(void)upload_data;
	(void)upload_data_size;
	/* An answer in the first call would end the connection. */
	if (!*con_cls) {
		*con_cls = response;
		return MHD_YES;
	}
	return MHD_queue_response(connection, MHD_HTTP_OK, response);
}

static struct MHD_Response *make_response(char *body)
{
	static const char *const headers[][2] = {
		{"Content-Type", "application/json"}, {"Metadata-Flavor", "Google"},
		{"Server", "Metadata Server for VM"}, {"X-XSS-Protection", "0"},
		{"X-Frame-Options", "SAMEORIGIN"},
	};
	struct MHD_Response *const response =
		MHD_create_response_from_buffer(strlen(body), body, MHD_RESPMEM_PERSISTENT);

	for (size_t i = 0; i < ARRAY_LEN(headers); i++)
		if (!response ||
		    MHD_add_response_header(response, headers[i][0], headers[i][1]) != MHD_YES)
			abort();
	return response;
}

_Noreturn static void fail(const char *what)
{
	perror(what);
	exit(EXIT_FAILURE);
}

static int listen_on(uint16_t port)
{
	const struct sockaddr_in address = {.sin_family = AF_INET,
					    .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
					    .sin_port = htons(port)};
	const int on = 1;
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(fd, (const struct sockaddr *)&address, sizeof(address)) || listen(fd, BACKLOG))
		fail("constant: listen");
	return fd;
}

static struct MHD_Daemon *start_daemon(struct MHD_Response *response)
{
	struct MHD_Daemon *const daemon =
		MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL, on_access,
				 response, MHD_OPTION_CONNECTION_LIMIT, MAX_CONNECTIONS,
				 MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY_BYTES,
				 MHD_OPTION_END);

	if (!daemon)
		fail("constant: MHD_start_daemon");
	return daemon;
}

static void accept_all(struct MHD_Daemon *daemon, int listener)
{
	for (;;) {
		struct sockaddr_in peer;
		socklen_t len = sizeof(peer);
		const int fd = accept4(listener, (struct sockaddr *)&peer, &len,
				       SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0)
			return;
		(void)MHD_add_connection(daemon, fd, (struct sockaddr *)&peer, len);
	}
}

static void run(struct MHD_Daemon *daemon)
{
	MHD_UNSIGNED_LONG_LONG timeout_ms;

	do
		(void)MHD_run(daemon);
	while (MHD_get_timeout(daemon, &timeout_ms) == MHD_YES && !timeout_ms);
}

int main(int argc, char **argv)
{
	uint64_t port;

	if (argc != 3 || parse_uint(argv[1], 1, UINT16_MAX, &port)) {
		(void)fputs("usage: constant PORT BODY\n", stderr);
		return 2;
	}
	struct MHD_Daemon *const daemon = start_daemon(make_response(argv[2]));
	struct pollfd fds[] = {
		{.fd = listen_on((uint16_t)port), .events = POLLIN},
		{.fd = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd,
		 .events = POLLIN},
	};
	while (poll(fds, ARRAY_LEN(fds), -1) >= 0) {
		if (fds[0].revents)
			accept_all(daemon, fds[0].fd);
		run(daemon);
	}
	fail("constant: poll");
}
