/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/credential/command_line.h"

#include "broker/base/buf.h"
#include "broker/base/strv.h"

#include <stdbool.h>
#include <string.h>

#define BLANKS " \t\r\n"

/* Reads one word, and moves on to what follows it. -1 where a quote is open. */
static int read_word(const char **text, struct buf *word)
{
	bool quoted = false;

	for (; **text && (quoted || !strchr(BLANKS, **text)); ++*text) {
		if (**text == '"')
			quoted = !quoted;
		else
			buf_add_bytes(word, *text, 1);
	}
	return quoted ? -1 : 0;
}

int command_line_split(struct strv *argv, const char *command)
{
	AUTO_BUF struct buf word;

	buf_init(&word, strlen(command) + 1);
	for (;;) {
		command += strspn(command, BLANKS);
		if (!*command)
			return argv->count ? 0 : -1;
		buf_reset(&word);
		if (read_word(&command, &word))
			return -1;
		strv_add(argv, word.data ? word.data : "", word.len);
	}
}
