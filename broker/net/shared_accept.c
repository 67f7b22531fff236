/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/net/shared_accept.h"

#include "broker/net/address.h"
#include "broker/net/bounded_call.h"
#include "broker/net/offered_socket.h"

#include <fcntl.h>
#include <string.h>

/* RFC 2292; the C library's headers have only the successor, which TCP does not answer. */
#ifndef IPV6_2292PKTOPTIONS
#define IPV6_2292PKTOPTIONS 6
#endif

void shared_accept_prepare(int fd)
{
	bounded_call_prepare();
	(void)fcntl(fd, F_SETFL, O_NONBLOCK);
}

int shared_accept(int fd, struct sockaddr *sa, socklen_t *len)
{
	/* Inherited, it would have close(2) wait for a client that does not read. */
	const struct linger none = {0};

	bounded_call_begin();
	const int accepted = accept4(fd, sa, len, SOCK_NONBLOCK | SOCK_CLOEXEC);
	bounded_call_end();
	if (accepted >= 0)
		(void)setsockopt(accepted, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	return accepted;
}

void shared_accept_close(int fd)
{
	/* The other holder's copy would keep the queue open. */
	(void)shutdown(fd, SHUT_RDWR);
	bounded_close(fd);
}

void shared_accept_leave(int fd)
{
	bounded_close(fd);
}

union control {
	char bytes[128];
	struct cmsghdr align;
};

/* The index of the interface over which the connection was made; 0 where the kernel does not tell. */
static unsigned interface_of(int fd, int level, int want_option, int read_option)
{
	const int yes = 1;
	union control control;
	socklen_t len = sizeof(control.bytes);

	if (setsockopt(fd, level, want_option, &yes, sizeof(yes)) ||
	    getsockopt(fd, level, read_option, control.bytes, &len))
		return 0;
	struct msghdr header = {.msg_control = control.bytes, .msg_controllen = len};
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&header); c; c = CMSG_NXTHDR(&header, c)) {
		struct in_pktinfo v4;
		struct in6_pktinfo v6;
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO &&
		    c->cmsg_len >= CMSG_LEN(sizeof(v4))) {
			memcpy(&v4, CMSG_DATA(c), sizeof(v4));
			return (unsigned)v4.ipi_ifindex;
		}
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO &&
		    c->cmsg_len >= CMSG_LEN(sizeof(v6))) {
			memcpy(&v6, CMSG_DATA(c), sizeof(v6));
			return v6.ipi6_ifindex;
		}
	}
	return 0;
}

bool shared_accept_is_local(int fd, const struct address *peer, const struct address *local)
{
	if (!address_is_loopback(peer) && !address_same_ip(peer, local))
		return false;
	const unsigned interface =
		local->any.sa_family == AF_INET6 ?
			interface_of(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, IPV6_2292PKTOPTIONS) :
			interface_of(fd, IPPROTO_IP, IP_PKTINFO, IP_PKTOPTIONS);
	return interface == LOOPBACK_INTERFACE;
}
