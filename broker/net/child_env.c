/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/net/child_env.h"

#include "broker/base/alloc.h"
#include "broker/base/strv.h"

#include <stdbool.h>
#include <string.h>

/* Of sd_notify(3), sd_listen_fds(3), sd_watchdog_enabled(3) and the journal. */
static const char *const ours[] = {
	"NOTIFY_SOCKET", "LISTEN_PID",	  "LISTEN_FDS",	    "LISTEN_FDNAMES",
	"WATCHDOG_PID",	 "WATCHDOG_USEC", "JOURNAL_STREAM",
};

static bool is_named(const char *variable, const char *name)
{
	const size_t len = strlen(name);

	return !strncmp(variable, name, len) && variable[len] == '=';
}

static bool is_ours(const char *variable)
{
	for (size_t i = 0; i < ARRAY_LEN(ours); i++)
		if (is_named(variable, ours[i]))
			return true;
	return false;
}

void child_env_copy(struct strv *env, const char *const *from)
{
	for (; from && *from; from++)
		if (!is_ours(*from))
			strv_add(env, *from, strlen(*from));
}

void child_env_set(struct strv *env, const char *name, const char *value)
{
	AUTO_FREE char *variable = xasprintf("%s=%s", name, value);

	for (size_t i = 0; i < env->count; i++) {
		if (!is_named(env->items[i], name))
			continue;
		free(env->items[i]);
		env->items[i] = TAKE(variable);
		return;
	}
	strv_add(env, variable, strlen(variable));
}
