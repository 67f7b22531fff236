/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/base/buf.h"

#include "broker/base/alloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void buf_init(struct buf *buf, size_t max_bytes)
{
	*buf = (struct buf){.max_bytes = max_bytes};
}

void buf_init_sensitive(struct buf *buf, size_t max_bytes)
{
	*buf = (struct buf){.max_bytes = max_bytes, .sensitive = true};
}

void buf_deinit(struct buf *buf)
{
	if (buf->sensitive && buf->data)
		explicit_bzero(buf->data, buf->capacity);
	free(buf->data);
	buf->data = NULL;
	buf->len = 0;
	buf->capacity = 0;
}

void buf_reset(struct buf *buf)
{
	if (buf->sensitive && buf->data)
		explicit_bzero(buf->data, buf->capacity);
	buf->len = 0;
	if (buf->data)
		buf->data[0] = '\0';
}

static void grow(struct buf *buf, size_t needed)
{
	size_t capacity = buf->capacity ? buf->capacity : 256;

	while (capacity < needed)
		capacity *= 2;
	if (capacity == buf->capacity)
		return;
	char *const data = xmalloc(capacity);
	if (buf->data)
		memcpy(data, buf->data, buf->len);
	const size_t len = buf->len;
	const size_t max_bytes = buf->max_bytes;
	const bool sensitive = buf->sensitive;
	buf_deinit(buf);
	*buf = (struct buf){data, len, capacity, max_bytes, sensitive};
}

int buf_append(struct buf *buf, const void *data, size_t len)
{
	if (len > buf->max_bytes - buf->len)
		return -1;
	grow(buf, buf->len + len + 1);
	if (len)
		memcpy(buf->data + buf->len, data, len);
	buf->len += len;
	buf->data[buf->len] = '\0';
	return 0;
}

void buf_add_bytes(struct buf *buf, const void *data, size_t len)
{
	if (buf_append(buf, data, len))
		abort();
}

void buf_add(struct buf *buf, const char *text)
{
	buf_add_bytes(buf, text, strlen(text));
}

void buf_addf(struct buf *buf, const char *fmt, ...)
{
	va_list ap;
	va_list again;

	va_start(ap, fmt);
	va_copy(again, ap);
	const int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n > buf->max_bytes - buf->len)
		abort();
	grow(buf, buf->len + (size_t)n + 1);
	(void)vsnprintf(buf->data + buf->len, (size_t)n + 1, fmt, again);
	va_end(again);
	buf->len += (size_t)n;
}
