/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of a SOCK_SEQPACKET socket of the file system, and the descriptors that may come with them.
 * Nothing here waits, whatever the flags of the socket say.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stdbool.h>
#include <stddef.h>

#define SEQPACKET_MAX_BYTES 256
/* Descriptors that one message may bring; the kernel drops what is more. */
#define SEQPACKET_MAX_DESCRIPTORS 2

struct seqpacket_message {
	char text[SEQPACKET_MAX_BYTES + 1]; /* what came, and a NUL */
	size_t len;
	bool cut; /* longer than that, or descriptors came for which there was no room */
	int fds[SEQPACKET_MAX_DESCRIPTORS];
	size_t fd_count;
};

#define AUTO_SEQPACKET_MESSAGE CLEANUP(seqpacket_message_deinit)

enum seqpacket_result {
	SEQPACKET_MESSAGE,
	SEQPACKET_NOTHING, /* not now */
	SEQPACKET_END,	   /* the other side has gone, or sent an empty message */
};

/*
 * Takes the next message. Without `descriptors` there is no room for any: the kernel drops what a
 * stranger sends. With it they are the message's, closed on exec.
 */
NODISCARD enum seqpacket_result seqpacket_receive(int fd, bool descriptors,
						  struct seqpacket_message *message);
/* Closes the descriptors that are left in it; one that was taken is -1. */
void seqpacket_message_deinit(struct seqpacket_message *message);

/* -1 where the other side has gone, or does not read. */
int seqpacket_send(int fd, const char *text);
