/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/answer.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The number that Content-Length gives; 0 without one, which is right for a 204. */
static size_t body_length(const char *head, size_t head_len)
{
	static const char name[] = "\r\nContent-Length:";
	const size_t name_len = sizeof(name) - 1;

	for (size_t i = 0; i + name_len < head_len; i++)
		if (head[i] == '\r' && !strncasecmp(&head[i], name, name_len))
			return strtoul(&head[i + name_len], NULL, 10);
	return 0;
}

size_t answer_length(const char *data, size_t len)
{
	const char *const end = memmem(data, len, "\r\n\r\n", 4);

	if (!end)
		return 0;
	const size_t head_len = (size_t)(end - data) + 4;
	const size_t all = head_len + body_length(data, head_len);
	return all <= len ? all : 0;
}

unsigned answer_status(const char *data, size_t len)
{
	static const char version[] = "HTTP/1.";

	/* "HTTP/1.1 200 " */
	if (len < 13 || memcmp(data, version, sizeof(version) - 1) != 0)
		return 0;
	return (unsigned)strtoul(&data[9], NULL, 10);
}
