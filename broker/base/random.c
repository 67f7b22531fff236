/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/base/random.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

static void fill(void *bytes, size_t len)
{
	/* Up to 256 bytes come whole once the pool is ready (getrandom(2)). */
	while (getrandom(bytes, len, 0) != (ssize_t)len)
		if (errno != EINTR)
			abort();
}

uint32_t random_below(uint32_t bound)
{
	uint64_t value;

	fill(&value, sizeof(value));
	return (uint32_t)(value % bound);
}

void random_hex(char *out, size_t size)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i + 1 < size; i++) {
		unsigned char byte;
		fill(&byte, 1);
		out[i] = digits[byte & 15];
	}
	out[size - 1] = '\0';
}
