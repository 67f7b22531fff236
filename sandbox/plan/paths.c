/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/plan/paths.h"

#include "broker/base/alloc.h"

#include <string.h>
#include <sys/stat.h>

bool path_is_normal(const char *path)
{
	if (*path != '/' || !path[1])
		return false;
	while (*path) {
		const char *const name = path + 1;
		const size_t len = strcspn(name, "/");
		if (!len || (len == 1 && *name == '.') || (len == 2 && !memcmp(name, "..", 2)))
			return false;
		path = name + len;
	}
	return true;
}

bool path_is_writable_in_options(const char *path)
{
	for (; *path; path++)
		if ((unsigned char)*path < 0x20 || *path == 0x7f || strchr(",\"", *path))
			return false;
	return true;
}

bool path_is_within(const char *path, const char *top)
{
	size_t len = strlen(top);

	while (len && top[len - 1] == '/')
		len--;
	return !strncmp(path, top, len) && (!path[len] || path[len] == '/');
}

char *path_join(const char *top, const char *below)
{
	return *below ? xasprintf("%s/%s", top, below) : xstrdup(top);
}

char *path_parent(const char *path)
{
	const char *const slash = strrchr(path, '/');

	return slash && slash != path ? xstrndup(path, (size_t)(slash - path)) : xstrdup("/");
}

char *path_beside(const char *path, const char *name)
{
	const char *const slash = strrchr(path, '/');

	return slash ? xasprintf("%.*s/%s", (int)(slash - path), path, name) : xstrdup(name);
}

bool path_is_directory(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}
