/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libmicrohttpd answering a constant: what the library alone costs.
 *
 * usage: constant PORT BODY; ends with its standard input.
 */
#include "broker/base/compiler.h"
#include "broker/base/parse.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As posternd has it. */
#define CONNECTION_MEMORY_BYTES ((size_t)8192)
#define MAX_CONNECTIONS 2048U

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

	for (size_t i = 0; response && i < ARRAY_LEN(headers); i++)
		if (MHD_add_response_header(response, headers[i][0], headers[i][1]) != MHD_YES)
			abort();
	return response;
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	uint64_t port;
	char byte;

	if (argc != 3 || parse_uint(argv[1], 1, UINT16_MAX, &port)) {
		(void)fputs("usage: constant PORT BODY\n", stderr);
		return 2;
	}
	address.sin_port = htons((uint16_t)port);
	struct MHD_Response *const response = make_response(argv[2]);
	struct MHD_Daemon *const daemon =
		MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_INTERNAL_POLLING_THREAD, (uint16_t)port,
				 NULL, NULL, on_access, response, MHD_OPTION_SOCK_ADDR, &address,
				 MHD_OPTION_CONNECTION_LIMIT, MAX_CONNECTIONS,
				 MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY_BYTES,
				 MHD_OPTION_END);
	if (!daemon || !response) {
		(void)fputs("constant: libmicrohttpd does not start\n", stderr);
		return EXIT_FAILURE;
	}
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	MHD_stop_daemon(daemon);
	MHD_destroy_response(response);
	return EXIT_SUCCESS;
}
