/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/dial.h"

#include "broker/base/parse.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

static int read_path(struct dial *dial, const char *text)
{
	struct sockaddr_un *const path = &dial->address.path;

	if (strlen(text) >= sizeof(path->sun_path))
		return -1;
	path->sun_family = AF_UNIX;
	memcpy(path->sun_path, text, strlen(text) + 1);
	dial->len = sizeof(*path);
	return 0;
}

int dial_init(struct dial *dial, const char *text)
{
	struct sockaddr_in ip = {.sin_family = AF_INET};
	char host[INET_ADDRSTRLEN];
	uint64_t port;

	memset(dial, 0, sizeof(*dial));
	if (text[0] == '/')
		return read_path(dial, text);
	const char *const colon = strrchr(text, ':');
	if (!colon || (size_t)(colon - text) >= sizeof(host) ||
	    parse_uint(colon + 1, 1, UINT16_MAX, &port))
		return -1;
	memcpy(host, text, (size_t)(colon - text));
	host[colon - text] = '\0';
	if (inet_pton(AF_INET, host, &ip.sin_addr) != 1)
		return -1;
	ip.sin_port = htons((uint16_t)port);
	memcpy(&dial->address, &ip, sizeof(ip));
	dial->len = sizeof(ip);
	return 0;
}

static int begin(const struct dial *dial, int type)
{
	const int family = dial->address.any.sa_family;
	const int on = 1;
	const int fd = socket(family, type | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	if (family == AF_INET)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (!connect(fd, &dial->address.any, dial->len) || errno == EINPROGRESS)
		return fd;
	const int errnum = errno;
	close(fd);
	errno = errnum;
	return -1;
}

int dial_begin(const struct dial *dial)
{
	return begin(dial, SOCK_STREAM | SOCK_NONBLOCK);
}

int dial_wait(const struct dial *dial)
{
	return begin(dial, SOCK_STREAM);
}
