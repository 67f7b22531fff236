/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/door/netlink.h"

#include <errno.h>
#include <stdalign.h>
#include <string.h>
#include <sys/socket.h>

/* The most that the kernel puts into one datagram of a dump. */
#define ROOM_BYTES 32768

void nl_begin(struct nl_request *request, uint16_t type, const void *fixed, size_t size)
{
	*request =
		(struct nl_request){.head = {.nlmsg_type = type, .nlmsg_len = NLMSG_SPACE(size)}};
	memcpy(request->rest, fixed, size);
}

void nl_put(struct nl_request *request, uint16_t type, const void *data, size_t size)
{
	struct rtattr *const a = (void *)((char *)request + request->head.nlmsg_len);

	*a = (struct rtattr){.rta_type = type, .rta_len = (uint16_t)RTA_LENGTH(size)};
	memcpy(RTA_DATA(a), data, size);
	request->head.nlmsg_len += RTA_SPACE(size);
	request->attributes++;
}

const struct rtattr *nl_next(const struct nlmsghdr *message, size_t size, const struct rtattr *a)
{
	const char *const end = (const char *)message + message->nlmsg_len;
	const char *const at = a ? (const char *)a + RTA_ALIGN(a->rta_len) :
				   (const char *)message + NLMSG_SPACE(size);
	const struct rtattr *const next = (const void *)at;

	return RTA_OK(next, end - at) ? next : NULL;
}

static int talk(int fd, struct nl_request *request, uint16_t flags, nl_show *show, void *ctx)
{
	alignas(NLMSG_ALIGNTO) char data[ROOM_BYTES];
	int error = 0;

	request->head.nlmsg_flags = NLM_F_REQUEST | flags;
	if (send(fd, request, request->head.nlmsg_len, 0) < 0)
		return -1;
	for (;;) {
		const struct nlmsghdr *message = (void *)data;
		ssize_t left = recv(fd, data, sizeof(data), MSG_TRUNC);

		if (left < 0)
			return -1;
		if (left > ROOM_BYTES)
			return errno = EMSGSIZE, -1;
		for (; NLMSG_OK(message, left); message = NLMSG_NEXT(message, left)) {
			if (message->nlmsg_flags & NLM_F_DUMP_INTR)
				error = EAGAIN;
			if (message->nlmsg_type == NLMSG_ERROR ||
			    message->nlmsg_type == NLMSG_DONE) {
				/* Both begin with an errno, as a negative number. */
				const int *const code = NLMSG_DATA(message);

				errno = *code ? -*code : error;
				return errno ? -1 : 0;
			}
			if (show)
				show(ctx, message);
		}
	}
}

int nl_ask(int fd, struct nl_request *request, uint16_t flags)
{
	return talk(fd, request, NLM_F_ACK | flags, NULL, NULL);
}

int nl_dump(int fd, uint16_t type, uint8_t family, nl_show *show, void *ctx)
{
	/* The family is the first byte of each of rtnetlink's fixed parts. */
	const uint8_t fixed[12] = {family};
	struct nl_request request;
	int failed;

	nl_begin(&request, type, fixed, sizeof(fixed));
	do {
		show(ctx, NULL);
		failed = talk(fd, &request, NLM_F_DUMP, show, ctx);
	} while (failed && errno == EAGAIN);
	return failed;
}
