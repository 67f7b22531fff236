/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/door/endpoint.h"

#include "sandbox/door/exit_code.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#define PORT 80
#define BACKLOG 128

const struct endpoint ENDPOINTS[ENDPOINTS_MAX] = {
	{.family = AF_INET, .size = 4, .address = {169, 254, 169, 254}},
	{.family = AF_INET6,
	 .size = 16,
	 .address = {0xfd, 0x20, 0, 0xce, [14] = 0x02, [15] = 0x54}},
};

static void set(int fd, int level, int option, int value)
{
	demand(setsockopt(fd, level, option, &value, sizeof(value)) == 0, EXIT_BIND,
	       "a socket cannot be prepared:");
}

static int open_bound(const struct endpoint *endpoint, bool guard)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(PORT)};
	const bool is_v4 = endpoint->family == AF_INET;
	const int fd = socket(endpoint->family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	demand(fd >= 0, EXIT_BIND, "a socket cannot be had:");
	set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (!is_v4)
		set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	if (!guard) {
		memcpy(is_v4 ? (void *)&v4.sin_addr : &v6.sin6_addr, endpoint->address,
		       endpoint->size);
		demand(setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "lo", sizeof("lo")) == 0,
		       EXIT_DEVICE,
		       "the kernel does not let the door bind to lo; Linux 5.7 or CAP_NET_RAW is needed:");
	}
	demand(bind(fd, is_v4 ? (void *)&v4 : &v6, is_v4 ? sizeof(v4) : sizeof(v6)) == 0, EXIT_BIND,
	       "port 80 cannot be bound, which takes NET_BIND_SERVICE:");
	return fd;
}

void endpoint_listen(enum ipv6 ipv6, struct endpoint_sockets *out)
{
	const size_t guarded = ipv6 == IPV6_ABSENT ? 1 : 2;
	int guards[ENDPOINTS_MAX];

	/*
	 * A guard holds the wildcard address of the port and never listens. Without SO_REUSEADDR it is in the way
	 * of every later bind, whatever the device: a listener on lo alone is not in that of a SO_REUSEPORT
	 * socket on another device, by which the port could be taken over.
	 */
	for (size_t i = 0; i < guarded; i++)
		guards[i] = open_bound(&ENDPOINTS[i], true);
	out->count = ipv6 == IPV6_ON ? 2 : 1;
	for (size_t i = 0; i < out->count; i++) {
		out->listeners[i] = open_bound(&ENDPOINTS[i], false);
		demand(listen(out->listeners[i], BACKLOG) == 0, EXIT_BIND,
		       "port 80 cannot be had:");
	}
	for (size_t i = 0; i < guarded; i++)
		set(guards[i], SOL_SOCKET, SO_REUSEADDR, 0);
}
