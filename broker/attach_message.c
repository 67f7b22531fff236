/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/attach_message.h"

#include <string.h>

static int read_key(const char *text, size_t len, const char **out)
{
	static const char digits[] = "0123456789abcdef";

	if (len != ATTACH_KEY_LEN)
		return -1;
	for (size_t i = 0; i < len; i++)
		if (!memchr(digits, text[i], sizeof(digits) - 1))
			return -1;
	*out = text;
	return 0;
}

int attach_message_read(const char *text, size_t len, struct attach_message *out)
{
	struct attach_message message = {.kind = ATTACH_MESSAGE_SOCKETS};

	if (len == 1 && text[0] == 'D') {
		*out = message;
		return 0;
	}
	if (len < 2 || text[1] != ' ' || (text[0] != 'T' && text[0] != 'R') ||
	    read_key(text + 2, len - 2, &message.key))
		return -1;
	message.kind = text[0] == 'T' ? ATTACH_MESSAGE_TICKET : ATTACH_MESSAGE_REOFFER;
	*out = message;
	return 0;
}
