/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing run of bytes with a cap. A sensitive one is cleared wherever it leaves memory behind.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stdbool.h>
#include <stddef.h>

struct buf {
	char *data; /* always ends with a NUL that len does not count; NULL while empty */
	size_t len;
	size_t capacity;
	size_t max_bytes; /* an append past it fails */
	bool sensitive;
};

#define AUTO_BUF CLEANUP(buf_deinit)

void buf_init(struct buf *buf, size_t max_bytes);
void buf_init_sensitive(struct buf *buf, size_t max_bytes);
void buf_deinit(struct buf *buf);
/* Forgets the content, keeps the memory. */
void buf_reset(struct buf *buf);

/* -1 where it would pass max_bytes; nothing is appended then. */
NODISCARD int buf_append(struct buf *buf, const void *data, size_t len);

/* For what the caller knows to fit: a failure there is a bug and aborts. */
void buf_add(struct buf *buf, const char *text);
void buf_add_bytes(struct buf *buf, const void *data, size_t len);
void buf_addf(struct buf *buf, const char *fmt, ...) PRINTF_LIKE(2, 3);
