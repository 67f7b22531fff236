/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/base/base64url.h"

#include "broker/base/buf.h"

#include <stdint.h>
#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void base64url_encode(struct buf *out, const void *bytes, size_t len)
{
	const unsigned char *in = bytes;

	while (len) {
		const size_t take = len < 3 ? len : 3;
		uint32_t group = (uint32_t)in[0] << 16;
		if (take > 1)
			group |= (uint32_t)in[1] << 8;
		if (take > 2)
			group |= in[2];
		const char quad[4] = {alphabet[group >> 18], alphabet[group >> 12 & 63],
				      alphabet[group >> 6 & 63], alphabet[group & 63]};
		buf_add_bytes(out, quad, take + 1);
		in += take;
		len -= take;
	}
}

static int value_of(char c)
{
	const char *const at = memchr(alphabet, c, sizeof(alphabet) - 1);

	return at ? (int)(at - alphabet) : -1;
}

ssize_t base64url_decode(void *out, const char *text, size_t len)
{
	char *const bytes = out;
	unsigned bits = 0;
	int held = 0;
	ssize_t written = 0;

	for (size_t i = 0; i < len; i++) {
		const int value = value_of(text[i]);
		if (value < 0)
			return -1;
		bits = (bits << 6 | (unsigned)value) & 0xffff;
		held += 6;
		if (held < 8)
			continue;
		held -= 8;
		bytes[written++] = (char)(bits >> held & 0xff);
	}
	return written;
}
