/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log: one line an event on standard error, words first, then key=value fields. A line that the
 * reader of standard error does not take is dropped and counted, never waited for.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stdbool.h>
#include <stddef.h>

enum log_level {
	LOG_LEVEL_ERROR,
	LOG_LEVEL_WARNING,
	LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG,
};

/* The level that is written; journal: each line starts with "<N>" as sd-daemon(3) says. */
void log_init(enum log_level level, bool journal);
bool log_enabled(enum log_level level);
void log_write(enum log_level level, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* The level of that name, or -1. */
int log_level_by_name(const char *name);

#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)                                           \
	do {                                                     \
		if (log_enabled(LOG_LEVEL_DEBUG))                \
			log_write(LOG_LEVEL_DEBUG, __VA_ARGS__); \
	} while (0)

/* At most so many bytes of what somebody else chose are shown. */
#define QUOTED_MAX_BYTES 200

struct quoted {
	char text[4 * QUOTED_MAX_BYTES + 8];
};

/*
 * Bytes that a client or a server chose, in double quotes, escaped outside printable ASCII and cut
 * after QUOTED_MAX_BYTES. Returns quoted->text.
 */
const char *quote(struct quoted *quoted, const void *bytes, size_t len);
/* The same of a string; NULL shows as "". */
const char *quote_str(struct quoted *quoted, const char *s);

/*
 * Writes to a descriptor that may be a pipe whose reader has stopped, without ever waiting for it.
 * Returns 0, or -1 where the line was lost: all of it, or only its end. A pipe takes up to PIPE_BUF bytes
 * whole or not at all; a file on a disk that becomes full may take any part. `written` is how many bytes
 * were, either way.
 */
NODISCARD int write_unless_full(int fd, const char *data, size_t len, size_t *written);
