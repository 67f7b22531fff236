/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/run/door_words.h"

#include "broker/base/err.h"
#include "broker/base/log.h"
#include "sandbox/door/exit_code.h"

#include <string.h>

/* What each line of postern-door begins with. */
#define PREFIX "postern-door: "

static const struct {
	enum exit_code status;
	const char *advice;
} advices[] = {
	{EXIT_TAKEN, "; another door or the host itself is in that network namespace"},
	{EXIT_ALIEN,
	 "; something changes the rules in the engine's networks, --attach gateway needs none"},
	{EXIT_DEVICE, "; Linux 5.7 or later is needed, --attach gateway does without"},
	{EXIT_CONNECT,
	 "; the engine must be on the broker's host and reach its attach directory, also under "
	 "SELinux and in user namespaces; --attach gateway does without"},
	{EXIT_CONFINE, "; --attach gateway does without"},
};

static const char *advice_of(int status)
{
	for (size_t i = 0; i < ARRAY_LEN(advices); i++)
		if ((int)advices[i].status == status)
			return advices[i].advice;
	return "";
}

void door_words(const char *said, int status, struct err *err)
{
	const char *const line = strstr(said, PREFIX);
	const char *const text = line ? line + strlen(PREFIX) : "";
	struct quoted q;

	if (line)
		(void)err_set(err, ERR_SYSTEM, "no endpoint inside the sandbox: the door says %s%s",
			      quote(&q, text, strcspn(text, "\r\n")), advice_of(status));
	else
		(void)err_set(err, ERR_SYSTEM,
			      "no endpoint inside the sandbox: the door ended with status %d%s",
			      status, advice_of(status));
}
