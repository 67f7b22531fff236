/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What C lacks: ownership that ends with the scope, results that must be looked at.
 */
#pragma once

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define NODISCARD __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#define CLEANUP(f) __attribute__((cleanup(f)))
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* The struct of which `member` is at `ptr`. */
#define CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr) - offsetof(type, member)))

/* Frees what the pointer variable points to when it leaves its scope. */
#define AUTO_FREE CLEANUP(auto_free)
/* Closes the descriptor variable, if >= 0, when it leaves its scope. */
#define AUTO_CLOSE CLEANUP(auto_close)

/* Moves a pointer out of a variable: the visible end of its ownership there. */
#define TAKE(p)                           \
	({                                \
		__auto_type taken_ = (p); \
		(p) = NULL;               \
		taken_;                   \
	})

/* The same for a descriptor. */
#define TAKE_FD(fd)                   \
	({                            \
		int taken_fd_ = (fd); \
		(fd) = -1;            \
		taken_fd_;            \
	})

static inline void auto_free(void *p)
{
	free(*(void **)p);
}

static inline void auto_close(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}
