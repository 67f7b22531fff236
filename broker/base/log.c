/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/base/log.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The one mutable global of the program. */
static struct {
	enum log_level level;
	bool journal;
	uint64_t lost;
} state = {.level = LOG_LEVEL_INFO};

static const struct {
	const char *name;
	const char *prefix; /* sd-daemon(3) */
} levels[] = {
	[LOG_LEVEL_ERROR] = {"error", "<3>"},
	[LOG_LEVEL_WARNING] = {"warning", "<4>"},
	[LOG_LEVEL_INFO] = {"info", "<6>"},
	[LOG_LEVEL_DEBUG] = {"debug", "<7>"},
};

void log_init(enum log_level level, bool journal)
{
	state.level = level;
	state.journal = journal;
}

bool log_enabled(enum log_level level)
{
	return level <= state.level;
}

int log_level_by_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(levels); i++)
		if (!strcmp(levels[i].name, name))
			return (int)i;
	return -1;
}

int write_unless_full(int fd, const char *data, size_t len, size_t *written)
{
	struct pollfd pfd = {.fd = fd, .events = POLLOUT};

	*written = 0;
	while (len) {
		/* A pipe that polls writable takes PIPE_BUF bytes without waiting, not more. */
		if (poll(&pfd, 1, 0) != 1 || !(pfd.revents & POLLOUT))
			return -1;
		const ssize_t n = write(fd, data, len < PIPE_BUF ? len : PIPE_BUF);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		data += n;
		len -= (size_t)n;
		*written += (size_t)n;
	}
	return 0;
}

void log_write(enum log_level level, const char *fmt, ...)
{
	/* Not above PIPE_BUF, see write_unless_full(). */
	char line[4096];
	size_t written;
	va_list ap;

	if (!log_enabled(level))
		return;
	const int head = snprintf(line, sizeof(line),
				  "%s%s: ", state.journal ? levels[level].prefix : "",
				  levels[level].name);
	va_start(ap, fmt);
	int n = vsnprintf(line + head, sizeof(line) - (size_t)head - 1, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	if ((size_t)n > sizeof(line) - (size_t)head - 2)
		n = (int)(sizeof(line) - (size_t)head - 2);
	for (char *p = line + head; p < line + head + n; p++)
		if (*p == '\n' || *p == '\r')
			*p = ' ';
	line[head + n] = '\n';
	if (write_unless_full(STDERR_FILENO, line, (size_t)(head + n) + 1, &written))
		state.lost++;
}

const char *quote(struct quoted *quoted, const void *bytes, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *const in = bytes;
	const size_t shown = len < QUOTED_MAX_BYTES ? len : QUOTED_MAX_BYTES;
	char *out = quoted->text;

	*out++ = '"';
	for (size_t i = 0; i < shown; i++) {
		if (in[i] == '"' || in[i] == '\\') {
			*out++ = '\\';
			*out++ = (char)in[i];
		} else if (in[i] >= 0x20 && in[i] < 0x7f) {
			*out++ = (char)in[i];
		} else {
			*out++ = '\\';
			*out++ = 'x';
			*out++ = digits[in[i] >> 4];
			*out++ = digits[in[i] & 15];
		}
	}
	*out++ = '"';
	if (shown < len)
		out = stpcpy(out, "...");
	*out = '\0';
	return quoted->text;
}

const char *quote_str(struct quoted *quoted, const char *s)
{
	return quote(quoted, s ? s : "", s ? strlen(s) : 0);
}
