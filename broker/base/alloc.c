/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/base/alloc.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static void *checked(void *p)
{
	if (!p) {
		static const char text[] = "posternd: out of memory\n";
		(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
		abort();
	}
	return p;
}

void *xmalloc(size_t size)
{
	return checked(malloc(size ? size : 1));
}

void *xcalloc(size_t count, size_t size)
{
	return checked(calloc(count ? count : 1, size ? size : 1));
}

void *xrealloc(void *p, size_t size)
{
	return checked(realloc(p, size ? size : 1));
}

void *xreallocarray(void *p, size_t count, size_t size)
{
	return checked(reallocarray(p, count ? count : 1, size ? size : 1));
}

char *xstrdup(const char *s)
{
	return checked(strdup(s));
}

char *xstrndup(const char *s, size_t len)
{
	return checked(strndup(s, len));
}

char *xasprintf(const char *fmt, ...)
{
	char *out = NULL;
	va_list ap;

	va_start(ap, fmt);
	const int n = vasprintf(&out, fmt, ap);
	va_end(ap);
	return checked(n < 0 ? NULL : out);
}

/* Reads "from-to perms" at the start of a line of /proc/self/maps. */
static int maps_line(const char *line, uintptr_t *from, uintptr_t *to, const char **perms)
{
	char *end;

	*from = strtoul(line, &end, 16);
	if (*end != '-')
		return -1;
	*to = strtoul(end + 1, &end, 16);
	if (*end != ' ' || *to <= *from)
		return -1;
	*perms = end + 1;
	return 0;
}

void memory_release(void)
{
	char line[512];

	malloc_trim(0);
	FILE *const maps = fopen("/proc/self/maps", "re");
	if (!maps)
		return;
	while (fgets(line, sizeof(line), maps)) {
		uintptr_t from, to;
		const char *perms;
		/* Text is mapped from a file and never written: dropping it loses nothing. */
		if (maps_line(line, &from, &to, &perms) || strncmp(perms, "r-xp", 4) != 0 ||
		    !strchr(perms, '/'))
			continue;
		// NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel gives the address as text
		(void)madvise((void *)from, to - from, MADV_DONTNEED);
	}
	(void)fclose(maps);
}
