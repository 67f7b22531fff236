/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/google/form.h"

#include "broker/base/buf.h"
#include "broker/base/parse.h"

void form_escape(struct buf *out, const char *text)
{
	static const char hex[] = "0123456789ABCDEF";

	for (; *text; text++) {
		const char one[] = {*text, '\0'};
		const unsigned char byte = (unsigned char)*text;
		const char escape[] = {'%', hex[byte >> 4], hex[byte & 15]};
		if (text_is_of(one, "-._~"))
			buf_add_bytes(out, one, 1);
		else
			buf_add_bytes(out, escape, sizeof(escape));
	}
}

void form_add(struct buf *out, const char *name, const char *value)
{
	if (out->len)
		buf_add(out, "&");
	buf_add(out, name);
	buf_add(out, "=");
	form_escape(out, value);
}
