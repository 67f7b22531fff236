/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/epoll_fault.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint32_t refused_events;
static size_t refused_count;

void epoll_refuse(uint32_t events)
{
	refused_events = events;
	refused_count = 0;
}

size_t epoll_refused(void)
{
	return refused_count;
}

/* Found before the C library's by whatever is loaded into this process. */
__attribute__((visibility("default"))) int epoll_ctl(int epfd, int op, int fd,
						     struct epoll_event *event)
{
	if (op == EPOLL_CTL_ADD && (event->events & refused_events)) {
		refused_count++;
		errno = ENOSPC;
		return -1;
	}
	return (int)syscall(SYS_epoll_ctl, epfd, op, fd, event);
}
