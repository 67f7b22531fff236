/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/run/door_binary.h"

#include "broker/base/alloc.h"
#include "broker/base/err.h"
#include "sandbox/plan/paths.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#define INSTALLED POSTERN_LIBEXECDIR "/postern/postern-door"

static bool is_program(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

/* The caller's; NULL where the kernel does not say. */
static char *beside_this(void)
{
	char self[PATH_MAX];

	const ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (len <= 0)
		return NULL;
	self[len] = '\0';
	return path_beside(self, "door/postern-door");
}

int door_binary_find(char **out, struct err *err)
{
	AUTO_FREE char *beside = beside_this();

	if (beside && is_program(beside))
		*out = TAKE(beside);
	else if (is_program(INSTALLED))
		*out = xstrdup(INSTALLED);
	else
		return err_set(err, ERR_SYSTEM,
			       "no postern-door at %s nor at %s: install it, or do without an "
			       "endpoint inside the sandbox with --attach gateway",
			       beside ? beside : "door/postern-door", INSTALLED);
	return 0;
}
