/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/sockets.h"

#include "broker/base/alloc.h"
#include "sandbox/caller.h"
#include "sandbox/mounts.h"
#include "sandbox/paths.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A workspace may be large; an engine's socket is not put deep into one by accident. */
#define MAX_DEPTH 8
#define MAX_ENTRIES 100000

static const char *const file_names[] = {
	"docker.sock",	   "podman.sock",    "containerd.sock", "crio.sock",
	"docker.raw.sock", "buildkitd.sock", "dockershim.sock",
};

static const char *const known_paths[] = {
	"/run/docker.sock",
	"/run/podman/podman.sock",
	"/run/containerd/containerd.sock",
	"/run/crio/crio.sock",
};

/* unix:// URLs. */
static const char *const known_variables[] = {"DOCKER_HOST", "CONTAINER_HOST"};

#define MAX_KNOWN (ARRAY_LEN(known_paths) + ARRAY_LEN(known_variables) + 1)

struct search {
	struct stat known[MAX_KNOWN];
	size_t known_count;
	size_t entries_left;
};

bool socket_is_engines(const char *path)
{
	const char *const slash = strrchr(path, '/');
	const char *const name = slash ? slash + 1 : path;

	for (size_t i = 0; i < ARRAY_LEN(file_names); i++)
		if (!strcmp(file_names[i], name))
			return true;
	return false;
}

static void know(struct search *search, const char *path)
{
	if (path && !stat(path, &search->known[search->known_count]))
		search->known_count++;
}

static void search_init(struct search *search, const struct mount_guard *guard)
{
	*search = (struct search){.entries_left = MAX_ENTRIES};
	for (size_t i = 0; i < ARRAY_LEN(known_paths); i++)
		know(search, known_paths[i]);
	for (size_t i = 0; i < ARRAY_LEN(known_variables); i++) {
		const char *const url = caller_nonblank(guard->caller, known_variables[i]);
		if (url && !strncmp(url, "unix://", strlen("unix://")))
			know(search, url + strlen("unix://"));
	}
	know(search, guard->control);
}

static bool is_dangerous(const struct search *search, int directory, const char *name)
{
	struct stat st;

	if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISSOCK(st.st_mode))
		return false;
	if (socket_is_engines(name))
		return true;
	for (size_t i = 0; i < search->known_count; i++)
		if (search->known[i].st_ino == st.st_ino && search->known[i].st_dev == st.st_dev)
			return true;
	return false;
}

static bool look(struct search *search, int parent, const char *path, const char *name,
		 unsigned depth, char **found);

static bool look_at(struct search *search, int directory, const char *path,
		    const struct dirent *entry, unsigned depth, char **found)
{
	if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
		return false;
	AUTO_FREE char *full = path_join(path, entry->d_name);
	const bool is_unknown = entry->d_type == DT_UNKNOWN;
	if ((entry->d_type == DT_SOCK || is_unknown) &&
	    is_dangerous(search, directory, entry->d_name)) {
		*found = TAKE(full);
		return true;
	}
	return (entry->d_type == DT_DIR || is_unknown) &&
	       look(search, directory, full, entry->d_name, depth + 1, found);
}

static bool look(struct search *search, int parent, const char *path, const char *name,
		 unsigned depth, char **found)
{
	const int fd = depth > MAX_DEPTH ? -1 :
					   openat(parent, name,
						  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *const directory = fd >= 0 ? fdopendir(fd) : NULL;
	bool is_there = false;

	if (!directory) {
		if (fd >= 0)
			(void)close(fd);
		return false;
	}
	const struct dirent *entry = readdir(directory);
	for (; entry && search->entries_left; entry = readdir(directory)) {
		search->entries_left--;
		is_there = look_at(search, fd, path, entry, depth, found);
		if (is_there)
			break;
	}
	(void)closedir(directory);
	return is_there;
}

bool socket_find_engines(const char *directory, const struct mount_guard *guard, char **found)
{
	struct search search;

	search_init(&search, guard);
	return look(&search, AT_FDCWD, directory, directory, 0, found);
}
