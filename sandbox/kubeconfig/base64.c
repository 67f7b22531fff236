/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/kubeconfig/base64.h"

#include "broker/base/buf.h"

#include <stdint.h>
#include <string.h>

static const char standard[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* The bytes of up to four digits that have been gathered. */
struct group {
	const char *alphabet;
	uint32_t bits;
	unsigned digits;
};

void base64_encode(struct buf *out, const void *bytes, size_t len)
{
	const unsigned char *p = bytes;

	for (; len; p += 3) {
		const size_t take = len < 3 ? len : 3;
		uint32_t bits = (uint32_t)p[0] << 16;
		if (take > 1)
			bits |= (uint32_t)p[1] << 8;
		if (take > 2)
			bits |= p[2];
		char digits[4] = {'=', '=', '=', '='};
		for (size_t i = 0; i <= take; i++)
			digits[i] = standard[bits >> (18 - 6 * i) & 63];
		buf_add_bytes(out, digits, sizeof(digits));
		len -= take;
	}
}

static int add_digit(struct group *group, char digit, struct buf *out)
{
	const char *const found = digit ? strchr(group->alphabet, digit) : NULL;

	if (!found)
		return -1;
	group->bits = group->bits << 6 | (uint32_t)(found - group->alphabet);
	if (++group->digits < 4)
		return 0;
	const char bytes[3] = {(char)(group->bits >> 16), (char)(group->bits >> 8),
			       (char)group->bits};
	group->bits = 0;
	group->digits = 0;
	return buf_append(out, bytes, sizeof(bytes));
}

/* What is left over when the text ends: two digits are a byte, three are two, the rest 0. */
static int end_group(const struct group *group, struct buf *out)
{
	const uint32_t bits = group->bits << 6 * (4 - group->digits);
	const char bytes[2] = {(char)(bits >> 16), (char)(bits >> 8)};

	switch (group->digits) {
	case 0:
		return 0;
	case 2:
		return bits & 0xffff ? -1 : buf_append(out, bytes, 1);
	case 3:
		return bits & 0xff ? -1 : buf_append(out, bytes, 2);
	default:
		return -1;
	}
}

int base64_decode(struct buf *out, const char *text, size_t len)
{
	struct group group = {.alphabet = standard};
	unsigned padding = 0;

	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\n' || text[i] == '\r')
			continue;
		if (text[i] == '=')
			padding++;
		else if (padding || add_digit(&group, text[i], out))
			return -1;
	}
	if (group.digits ? group.digits + padding != 4 : padding != 0)
		return -1;
	return end_group(&group, out);
}

int base64_decode_url(struct buf *out, const char *text, size_t len)
{
	struct group group = {.alphabet = url};

	for (size_t i = 0; i < len; i++)
		if (add_digit(&group, text[i], out))
			return -1;
	return end_group(&group, out);
}
