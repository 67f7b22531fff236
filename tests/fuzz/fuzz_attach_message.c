/* SPDX-License-Identifier: Apache-2.0 */
/* What comes on the attach socket: a message of the three kinds, or a refusal; a key is hex digits. */
#include "broker/attach_message.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *const text = (const char *)data;
	struct attach_message message;

	if (attach_message_read(text, size, &message))
		return 0;
	if (message.kind == ATTACH_MESSAGE_SOCKETS) {
		if (message.key || size != 1 || text[0] != 'D')
			abort();
		return 0;
	}
	if (message.key != text + 2 || size != 2 + ATTACH_KEY_LEN)
		abort();
	for (size_t i = 0; i < ATTACH_KEY_LEN; i++)
		if (!strchr("0123456789abcdef", message.key[i]) || !message.key[i])
			abort();
	return 0;
}
