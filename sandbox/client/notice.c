/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/client/notice.h"

#include "broker/base/err.h"

#include <stdarg.h>
#include <stdio.h>

void notice(const char *fmt, ...)
{
	char text[ERR_TEXT_SIZE];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	(void)fprintf(stderr, "postern: %s\n", text);
}
