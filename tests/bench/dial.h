/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections to what is measured.
 */
#pragma once

#include "broker/base/compiler.h"

#include <sys/socket.h>
#include <sys/un.h>

struct dial {
	union {
		struct sockaddr any;
		struct sockaddr_un path;
		struct sockaddr_storage storage;
	} address;
	socklen_t len;
};

/* "A.B.C.D:PORT", or the path of a socket, which begins with a slash. -1 where it is neither. */
NODISCARD int dial_init(struct dial *dial, const char *text);

/*
 * A connection under way: non-blocking, close-on-exec, and without Nagle's delay. -1 with errno where
 * the kernel refuses it at once.
 */
NODISCARD int dial_begin(const struct dial *dial);

/* One that is there, and blocks. */
NODISCARD int dial_wait(const struct dial *dial);
