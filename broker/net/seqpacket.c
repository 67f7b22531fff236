/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/net/seqpacket.h"

#include "broker/net/bounded_call.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* The room for descriptors is exact: CMSG_SPACE() of two leaves none for a third. */
union control {
	char bytes[CMSG_SPACE(SEQPACKET_MAX_DESCRIPTORS * sizeof(int))];
	struct cmsghdr align;
};

static void take_descriptors(struct seqpacket_message *message, struct msghdr *header)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (message->fd_count < SEQPACKET_MAX_DESCRIPTORS)
				message->fds[message->fd_count++] = fd;
			else
				bounded_close(fd);
		}
	}
}

enum seqpacket_result seqpacket_receive(int fd, bool descriptors, struct seqpacket_message *message)
{
	union control control;
	struct iovec iov = {.iov_base = message->text, .iov_len = SEQPACKET_MAX_BYTES};
	struct msghdr header = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = descriptors ? control.bytes : NULL,
		.msg_controllen = descriptors ? sizeof(control.bytes) : 0,
	};
	ssize_t len;

	message->fd_count = 0;
	bounded_call_begin(); /* descriptors for which there is no room are closed in it */
	do
		len = recvmsg(fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (len < 0 && errno == EINTR);
	bounded_call_end();
	if (len < 0)
		return errno == EAGAIN ? SEQPACKET_NOTHING : SEQPACKET_END;
	message->len = (size_t)len;
	message->text[len] = '\0';
	message->cut = (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
	if (descriptors)
		take_descriptors(message, &header);
	return len ? SEQPACKET_MESSAGE : SEQPACKET_END;
}

void seqpacket_message_deinit(struct seqpacket_message *message)
{
	for (size_t i = 0; i < message->fd_count; i++)
		if (message->fds[i] >= 0)
			bounded_close(message->fds[i]);
	message->fd_count = 0;
}

int seqpacket_send(int fd, const char *text)
{
	const size_t len = strlen(text);

	return send(fd, text, len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len ? 0 : -1;
}
