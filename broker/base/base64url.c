/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/base/base64url.h"

#include "broker/base/buf.h"

#include <stdint.h>

void base64url_encode(struct buf *out, const void *bytes, size_t len)
{
	static const char alphabet[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
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
