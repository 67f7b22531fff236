/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accepting on a listening socket that another process holds as well. Its flags are of the open file,
 * so the other may clear O_NONBLOCK, and its queue is one, so the other may take a connection: both at
 * once would leave accept(2) waiting for ever.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stdbool.h>
#include <sys/socket.h>

struct address;

/* How long shared_accept() may be held up. */
#define SHARED_ACCEPT_MS 10

/* Once, before the first shared_accept(): takes SIGALRM, which is to be nobody else's. */
void shared_accept_prepare(void);

/*
 * As accept4(2) on a socket that does not block, closed on exec; the new socket is this process's alone.
 * -1 with EAGAIN where nothing waits, and with EINTR where the other holder made it wait.
 */
NODISCARD int shared_accept(int fd, struct sockaddr *sa, socklen_t *len);

/*
 * True where an accepted connection was made in the namespace itself: it came over the loopback
 * interface, from a loopback address or from the one that it was made to.
 */
bool shared_accept_is_local(int fd, const struct address *peer, const struct address *local);
