/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/base/err.h"

#include <stdio.h>
#include <string.h>

int err_set(struct err *err, enum err_code code, const char *fmt, ...)
{
	va_list ap;

	err->code = code;
	va_start(ap, fmt);
	(void)vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return -1;
}

int err_set_errno(struct err *err, int errnum, const char *fmt, ...)
{
	char what[ERR_TEXT_SIZE - 128];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	err->code = ERR_SYSTEM;
	const char *const reason = strerrordesc_np(errnum);
	(void)snprintf(err->text, sizeof(err->text), "%s: %s", what,
		       reason ? reason : "unknown error");
	return -1;
}

int err_prefix(struct err *err, const char *fmt, ...)
{
	char context[256];
	char text[ERR_TEXT_SIZE];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(context, sizeof(context), fmt, ap);
	va_end(ap);
	memcpy(text, err->text, sizeof(text));
	(void)snprintf(err->text, sizeof(err->text), "%s: %.*s", context,
		       (int)(sizeof(err->text) - sizeof(context) - 2), text);
	return -1;
}
