/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accepting on a listening socket that another process holds as well. The flags are of the open file, so
 * the other may clear O_NONBLOCK at any time, and accept(2) would wait for ever: no poll before it helps,
 * as the other may take the connection too, and no time-out of the socket, as that is shared as well.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stdbool.h>
#include <sys/socket.h>

struct address;

/* Once for each such socket, before its first shared_accept(): it is not to block. */
void shared_accept_prepare(int fd);

/*
 * As accept4(2) on a socket that does not block, closed on exec; the new socket is this process's alone.
 * -1 with EAGAIN where nothing waits, and with EINTR where the other holder has made the socket block.
 */
NODISCARD int shared_accept(int fd, struct sockaddr *sa, socklen_t *len);

/* Nobody is accepted on it any more, by whatever copy of it. */
void shared_accept_close(int fd);
/* This process accepts no more; the other holder keeps the queue, for another that will. */
void shared_accept_leave(int fd);

/*
 * True where an accepted connection was made in the namespace itself: it came over the loopback
 * interface, from a loopback address or from the one that it was made to.
 */
bool shared_accept_is_local(int fd, const struct address *peer, const struct address *local);
