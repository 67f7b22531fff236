/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel that watches no more descriptors, as at fs.epoll.max_user_watches: the epoll_ctl(2) of a test that
 * links this, and of the libraries it uses.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* From now on a new watch of any of these events is refused; 0: none is. */
void epoll_refuse(uint32_t events);
/* How many have been, since the last call of epoll_refuse(). */
size_t epoll_refused(void);
