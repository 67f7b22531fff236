/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/plan/sockets.h"

#include "broker/base/alloc.h"
#include "sandbox/plan/caller.h"
#include "sandbox/plan/mounts.h"
#include "sandbox/plan/paths.h"

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

/* A directory that is still to be looked at. */
struct pending {
	char *path;
	unsigned depth;
};

struct queue {
	struct pending *items;
	size_t count;
};

static void queue_deinit(struct queue *queue)
{
	for (size_t i = 0; i < queue->count; i++)
		free(queue->items[i].path);
	free(queue->items);
}

static void enqueue(struct queue *queue, const char *path, unsigned depth)
{
	queue->items = xreallocarray(queue->items, queue->count + 1, sizeof(*queue->items));
	queue->items[queue->count++] = (struct pending){xstrdup(path), depth};
}

static void auto_closedir(DIR **directory)
{
	if (*directory)
		(void)closedir(*directory);
}

/* NULL also for what is no directory, which an entry of unknown type may be. */
static DIR *open_directory(const char *path)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *const directory = fd >= 0 ? fdopendir(fd) : NULL;

	if (directory)
		(void)TAKE_FD(fd);
	return directory;
}

static bool is_dots(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

/* Whether one of its entries is such a socket; directories in it are queued. */
static bool look(struct search *search, const struct pending *at, struct queue *queue, char **found)
{
	CLEANUP(auto_closedir) DIR *directory = open_directory(at->path);

	if (!directory)
		return false;
	const struct dirent *entry = readdir(directory);
	for (; entry && search->entries_left; entry = readdir(directory)) {
		AUTO_FREE char *path = path_join(at->path, entry->d_name);
		const bool is_unknown = entry->d_type == DT_UNKNOWN;
		search->entries_left--;
		if ((entry->d_type == DT_SOCK || is_unknown) &&
		    is_dangerous(search, dirfd(directory), entry->d_name)) {
			*found = TAKE(path);
			return true;
		}
		if ((entry->d_type == DT_DIR || is_unknown) && at->depth < MAX_DEPTH &&
		    !is_dots(entry->d_name))
			enqueue(queue, path, at->depth + 1);
	}
	return false;
}

bool socket_find_engines(const char *directory, const struct mount_guard *guard, char **found)
{
	CLEANUP(queue_deinit) struct queue queue = {0};
	struct search search;
	bool is_there = false;

	search_init(&search, guard);
	enqueue(&queue, directory, 0);
	/* Breadth first: what is put there by accident is near the top. */
	for (size_t i = 0; i < queue.count && !is_there; i++) {
		const struct pending at = queue.items[i];
		is_there = look(&search, &at, &queue, found);
	}
	return is_there;
}
