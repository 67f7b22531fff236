/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation that cannot fail: out of memory ends the process. Sizes that come from outside are
 * capped by their readers before they reach these.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stddef.h>

NODISCARD void *xmalloc(size_t size);
NODISCARD void *xcalloc(size_t count, size_t size);
NODISCARD void *xrealloc(void *p, size_t size);
/* Grows an array: count elements of size bytes, aborts on overflow of the product. */
NODISCARD void *xreallocarray(void *p, size_t count, size_t size);
NODISCARD char *xstrdup(const char *s);
NODISCARD char *xstrndup(const char *s, size_t len);
NODISCARD char *xasprintf(const char *fmt, ...) PRINTF_LIKE(1, 2);

/*
 * Gives back to the kernel what start-up or a peak left behind: free heap pages, and clean pages of
 * program text that are read again from the page cache when they are next needed.
 */
void memory_release(void);
