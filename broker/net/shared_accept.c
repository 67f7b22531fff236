/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/net/shared_accept.h"

#include "broker/net/address.h"
#include "broker/net/offered_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>

/* RFC 2292; the C library's headers have only the successor, which TCP does not answer. */
#ifndef IPV6_2292PKTOPTIONS
#define IPV6_2292PKTOPTIONS 6
#endif

/* The signal is only to end a system call. */
static void on_alarm(int signo)
{
	(void)signo;
}

void shared_accept_prepare(int fd)
{
	const struct sigaction action = {.sa_handler = on_alarm}; /* no SA_RESTART */
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGALRM);
	(void)sigaction(SIGALRM, &action, NULL);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	(void)fcntl(fd, F_SETFL, O_NONBLOCK);
}

/* Again and again: the first may come before the call that it is to end. */
static void set_alarm(suseconds_t every_us)
{
	const struct itimerval timer = {{0, every_us}, {0, every_us}};

	(void)setitimer(ITIMER_REAL, &timer, NULL);
}

int shared_accept(int fd, struct sockaddr *sa, socklen_t *len)
{
	set_alarm((suseconds_t)SHARED_ACCEPT_MS * 1000);
	const int accepted = accept4(fd, sa, len, SOCK_NONBLOCK | SOCK_CLOEXEC);
	const int errnum = errno;
	set_alarm(0);
	errno = errnum;
	return accepted;
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
