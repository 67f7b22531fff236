/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/plan/caller.h"

#include "broker/base/alloc.h"
#include "broker/base/parse.h"

#include <pwd.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* sudo says whose shell it was started from; that user's files are no less secret for it. */
static char *sudo_home(const struct caller *caller)
{
	const char *const text = caller_variable(caller, "SUDO_UID");
	uint64_t uid;

	if (caller->uid || !text || parse_uint(text, 0, UINT32_MAX, &uid))
		return NULL;
	const struct passwd *const entry = getpwuid((uid_t)uid);
	return entry ? xstrdup(entry->pw_dir) : NULL;
}

void caller_init(struct caller *caller, char *const *block)
{
	const struct passwd *const entry = getpwuid(getuid());

	*caller = (struct caller){
		.uid = getuid(),
		.gid = getgid(),
		.user = entry ? xstrdup(entry->pw_name) : xasprintf("%u", getuid()),
		.cwd = get_current_dir_name(),
		.environ = block,
		.terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO),
	};
	const char *const home = entry ? entry->pw_dir : caller_nonblank(caller, "HOME");
	caller->home = home ? xstrdup(home) : NULL;
	caller->sudo_home = sudo_home(caller); /* `entry` is gone */
	if (!caller->cwd)		       /* it was removed under us */
		caller->cwd = xstrdup("/");
}

void caller_deinit(struct caller *caller)
{
	free(caller->user);
	free(caller->home);
	free(caller->sudo_home);
	free(caller->cwd);
	*caller = (struct caller){0};
}

const char *caller_variable(const struct caller *caller, const char *name)
{
	const size_t len = strlen(name);

	for (char *const *item = caller->environ; item && *item; item++)
		if (!strncmp(*item, name, len) && (*item)[len] == '=')
			return *item + len + 1;
	return NULL;
}

const char *caller_nonblank(const struct caller *caller, const char *name)
{
	const char *const value = caller_variable(caller, name);

	return value && value[strspn(value, " \t\r\n")] ? value : NULL;
}
