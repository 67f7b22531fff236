/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/net/offered_socket.h"

#include "broker/base/err.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* Linux 5.14 and 5.1; older headers lack them. */
#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif
#ifndef SO_BINDTOIFINDEX
#define SO_BINDTOIFINDEX 62
#endif

int socket_netns(int fd, uint64_t *out)
{
	uint64_t cookie;
	socklen_t len = sizeof(cookie);

	if (getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &len))
		return -1;
	*out = cookie;
	return 0;
}

static int read_int(int fd, int option, int *out)
{
	socklen_t len = sizeof(*out);

	return getsockopt(fd, SOL_SOCKET, option, out, &len);
}

int offered_socket_read(int fd, struct offered_socket *out, struct err *err)
{
	struct offered_socket read = {0};
	struct sockaddr_storage sa = {0};
	socklen_t sa_len = sizeof(sa);
	socklen_t device_len = sizeof(read.device); /* no less will do; a NUL is in it */
	int listening;
	int sharing;

	if (read_int(fd, SO_DOMAIN, &read.domain))
		return errno == ENOTSOCK ? err_set(err, ERR_INVALID, "is no socket") :
					   err_set_errno(err, errno, "SO_DOMAIN");
	if (read_int(fd, SO_TYPE, &read.type) || read_int(fd, SO_PROTOCOL, &read.protocol) ||
	    read_int(fd, SO_ACCEPTCONN, &listening) || read_int(fd, SO_REUSEPORT, &sharing) ||
	    read_int(fd, SO_BINDTOIFINDEX, &read.interface) ||
	    getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, read.device, &device_len) ||
	    socket_netns(fd, &read.netns) || getsockname(fd, (struct sockaddr *)&sa, &sa_len))
		return err_set_errno(err, errno, "the kernel does not say what it is");
	read.is_listening = listening != 0;
	read.shares_port = sharing != 0;
	if (address_from_sockaddr(&read.local, (const struct sockaddr *)&sa, sa_len))
		read.local = (struct address){0};
	*out = read;
	return 0;
}

int offered_socket_judge(const struct offered_socket *offered,
			 const struct offered_socket_terms *terms, struct err *err)
{
	char text[ADDRESS_TEXT_SIZE];

	if (offered->domain != terms->local.any.sa_family || offered->type != SOCK_STREAM ||
	    offered->protocol != IPPROTO_TCP)
		return err_set(err, ERR_INVALID, "is no TCP socket of IPv%d",
			       terms->local.any.sa_family == AF_INET6 ? 6 : 4);
	if (!address_same_ip(&offered->local, &terms->local) ||
	    address_port(&offered->local) != address_port(&terms->local))
		return err_set(err, ERR_INVALID, "is not bound to %s",
			       address_format(&terms->local, text));
	if (strcmp(offered->device, "lo") != 0 || offered->interface != LOOPBACK_INTERFACE)
		return err_set(err, ERR_INVALID, "is not bound to the device lo");
	if (offered->shares_port)
		return err_set(err, ERR_INVALID, "shares its port (SO_REUSEPORT)");
	if (!offered->is_listening)
		return err_set(err, ERR_INVALID, "does not listen");
	if (offered->netns != terms->netns)
		return err_set(err, ERR_INVALID, "is of another network namespace than its sender");
	return 0;
}
