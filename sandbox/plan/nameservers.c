/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/plan/nameservers.h"

#include "broker/base/buf.h"
#include "broker/base/err.h"
#include "broker/base/file.h"
#include "broker/base/strv.h"

#include <string.h>

#define MAX_FILE_BYTES ((size_t)64 << 10)
#define KEYWORD "nameserver"
#define BLANKS " \t"

/* Engines read the second where the first names the stub, which no container reaches. */
static const char *const files[] = {
	"/etc/resolv.conf",
	"/run/systemd/resolve/resolv.conf",
};

/* resolv.conf(5): the keyword at the start of the line, then blanks, then the address. */
static void parse_line(const char *line, size_t len, struct strv *out)
{
	const size_t word = strlen(KEYWORD);

	if (len <= word || memcmp(line, KEYWORD, word) != 0 || !strchr(BLANKS, line[word]))
		return;
	const char *at = line + word;
	const char *const end = line + len;
	while (at < end && strchr(BLANKS, *at))
		at++;
	const char *stop = at;
	while (stop < end && !strchr(BLANKS "%\r", *stop))
		stop++;
	if (stop > at)
		strv_add(out, at, (size_t)(stop - at));
}

void nameservers_parse(const char *text, size_t len, struct strv *out)
{
	const char *const end = text + len;

	while (text < end) {
		const char *const newline = memchr(text, '\n', (size_t)(end - text));
		const char *const stop = newline ? newline : end;
		if (!memchr(text, '\0', (size_t)(stop - text)))
			parse_line(text, (size_t)(stop - text), out);
		text = newline ? newline + 1 : end;
	}
}

/* A file that is not there names none. */
void nameservers_of_host(struct strv *out)
{
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		AUTO_BUF struct buf text;
		struct err ignored;
		buf_init(&text, MAX_FILE_BYTES);
		if (!file_read(files[i], &text, NULL, &ignored) && text.data)
			nameservers_parse(text.data, text.len, out);
	}
}
