/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/door/exit_code.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

_Noreturn void die(enum exit_code code, const char *text, const char *subject)
{
	const char *const parts[] = {"postern-door: ", text, " ", subject};
	char line[512];
	size_t used = 0;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		for (const char *p = parts[i]; *p && used < sizeof(line) - 1; p++)
			line[used++] = *p >= ' ' && *p <= '~' ? *p : '?';
	}
	line[used++] = '\n';
	/* By write(2), which the filter lets through; nobody is left to be told that it failed. */
	(void)!write(STDERR_FILENO, line, used);
	_exit(code);
}

_Noreturn void die_errno(enum exit_code code, const char *text)
{
	die(code, text, strerror(errno));
}
