/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/net/listen.h"

#include "broker/base/err.h"
#include "broker/net/address.h"

#include <errno.h>
#include <sys/socket.h>

#define BACKLOG 1024

static int refuse(const struct address *address, int errnum, struct err *err)
{
	char text[ADDRESS_TEXT_SIZE];

	address_format(address, text);
	if (errnum == EADDRINUSE)
		return err_set(err, ERR_BUSY,
			       "cannot listen on %s: the port is in use (ss -ltnp shows by whom)",
			       text);
	if (errnum == EADDRNOTAVAIL)
		return err_set(err, ERR_BUSY, "cannot listen on %s: this host has no such address",
			       text);
	return err_set_errno(err, errnum, "cannot listen on %s", text);
}

int listen_tcp(struct address *address, int *out, struct err *err)
{
	const int yes = 1;
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);

	AUTO_CLOSE int fd =
		socket(address->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) ||
	    /* Of ip(7), and good for IPv6 too. */
	    setsockopt(fd, SOL_IP, IP_FREEBIND, &yes, sizeof(yes)) ||
	    (address->any.sa_family == AF_INET6 &&
	     setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes))) ||
	    bind(fd, &address->any, address->len) || listen(fd, BACKLOG) ||
	    getsockname(fd, (struct sockaddr *)&sa, &len) ||
	    address_from_sockaddr(address, (const struct sockaddr *)&sa, len))
		return refuse(address, errno, err);
	*out = TAKE_FD(fd);
	return 0;
}
