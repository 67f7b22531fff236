/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/net/watch.h"

#include "broker/base/alloc.h"
#include "broker/base/clock.h"
#include "broker/base/err.h"
#include "broker/base/list.h"
#include "broker/base/timer.h"
#include "broker/net/loop.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Of a directory. IN_ATTRIB, because a repair may be a chmod; the last two, because a directory may go and
 * another one come.
 */
#define MASK                                                                                 \
	(IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_DELETE | IN_ATTRIB | IN_DELETE_SELF | \
	 IN_MOVE_SELF | IN_ONLYDIR)
/*
 * Of a directory on the way, which another one may take the place of. What is in it is not told: a home has
 * more traffic than is worth waking up for.
 */
#define SELF_MASK (IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_MASK_ADD)
/* Links on the way, as the kernel counts them. */
#define MAX_LINKS 40
#define EVENT_BYTES 8192

/* A name in a directory that decides which file the path leads to. */
struct place {
	struct list link;
	int wd;
	char *name; /* "": only the directory itself */
};

struct watch {
	struct loop *loop;
	int fd;
	struct loop_source *source;
	struct timer timer;
	int64_t latest_ms; /* of the timer */
	char *path;	   /* NULL: none */
	bool told_blind;   /* of this path */
	struct list places;
	watch_fn *changed;
	void *ctx;
};

/* While a path is walked. */
struct walk {
	struct watch *watch;
	struct list places;
	struct err blind; /* the first one that there was */
	bool is_blind;
};

static void on_due(struct timer *timer);

static void tell_later(struct watch *watch)
{
	struct timer_queue *const timers = loop_timers(watch->loop);
	const int64_t now_ms = clock_boot_ms(timers->clock);
	int64_t due_ms = now_ms + WATCH_QUIET_MS;

	if (!timer_is_set(&watch->timer))
		watch->latest_ms = now_ms + WATCH_LATEST_MS;
	if (due_ms > watch->latest_ms)
		due_ms = watch->latest_ms;
	timer_set(timers, &watch->timer, due_ms, on_due);
}

static bool has_wd(const struct list *places, int wd)
{
	list_for_each(link, places)
		if (CONTAINER_OF(link, struct place, link)->wd == wd)
			return true;
	return false;
}

static void free_places(struct list *places)
{
	list_for_each(link, places) {
		struct place *const place = CONTAINER_OF(link, struct place, link);
		list_remove(link);
		free(place->name);
		free(place);
	}
}

static void add_place(struct walk *walk, int wd, const char *name)
{
	struct place *const place = xcalloc(1, sizeof(*place));

	place->wd = wd;
	place->name = xstrdup(name);
	list_append(&walk->places, &place->link);
}

/* The name, and the directory itself. */
static void note(struct walk *walk, const char *directory, const char *name)
{
	/* A directory that is watched already keeps its number. */
	const int wd = inotify_add_watch(walk->watch->fd, directory, MASK);

	if (wd < 0) {
		if (!walk->is_blind)
			(void)err_set_errno(&walk->blind, errno, "%s cannot be watched", directory);
		walk->is_blind = true;
		return;
	}
	add_place(walk, wd, name);
}

/* A directory that may be passed but not read cannot be watched: then that it moves is not seen. */
static void note_directory(struct walk *walk, const char *directory)
{
	const int wd = inotify_add_watch(walk->watch->fd, directory, SELF_MASK);

	if (wd >= 0)
		add_place(walk, wd, "");
}

/* Cuts the first name off; what is left begins behind its slashes. */
static char *take_name(char **rest)
{
	char *const begin = *rest + strspn(*rest, "/");
	const size_t len = strcspn(begin, "/");
	char *const name = xstrndup(begin, len);

	*rest = begin + len + strspn(begin + len, "/");
	return name;
}

static char *join(const char *directory, const char *name)
{
	return xasprintf("%s%s%s", directory, directory[strlen(directory) - 1] == '/' ? "" : "/",
			 name);
}

/* Where the link leads to; false where it is none. */
static bool read_link(const char *path, char target[static PATH_MAX])
{
	const ssize_t len = readlink(path, target, PATH_MAX);

	if (len <= 0 || len >= PATH_MAX)
		return false;
	target[len] = '\0';
	return true;
}

static bool is_directory(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* Notes each link on the way, and the file itself, or the first that is no directory yet. */
static void follow(struct walk *walk, const char *path)
{
	AUTO_FREE char *text = xstrdup(path);
	AUTO_FREE char *directory = xstrdup(*path == '/' ? "/" : ".");
	char *rest = text;
	int links = 0;

	while (*rest) {
		AUTO_FREE char *name = take_name(&rest);
		AUTO_FREE char *full = join(directory, name);
		char target[PATH_MAX];
		if (read_link(full, target) || !*rest || !is_directory(full))
			note(walk, directory, name);
		/* Looked at again, now that a change of it is told. */
		if (read_link(full, target)) {
			if (++links > MAX_LINKS)
				return;
			char *const next = xasprintf("%s%s%s", target, *rest ? "/" : "", rest);
			free(text);
			text = next;
			rest = text;
			if (*target == '/') {
				free(directory);
				directory = xstrdup("/");
			}
			continue;
		}
		if (!is_directory(full))
			return;
		note_directory(walk, full);
		free(directory);
		directory = TAKE(full);
	}
}

/* Watches what the path goes through now, and no more what it went through before. */
static void arm(struct walk *walk)
{
	struct watch *const watch = walk->watch;
	struct list old;

	list_init(&walk->places);
	if (watch->path)
		follow(walk, watch->path);
	list_move_all(&old, &watch->places);
	list_move_all(&watch->places, &walk->places);
	list_for_each(link, &old) {
		const int wd = CONTAINER_OF(link, struct place, link)->wd;
		if (!has_wd(&watch->places, wd))
			(void)inotify_rm_watch(watch->fd, wd);
	}
	free_places(&old);
}

/* Armed first: what changes while the caller looks is told again. */
static void on_due(struct timer *timer)
{
	struct watch *const watch = CONTAINER_OF(timer, struct watch, timer);
	struct walk walk = {.watch = watch};

	arm(&walk);
	const bool tells_blind = walk.is_blind && !watch->told_blind;
	watch->told_blind = walk.is_blind;
	watch->changed(watch->ctx, tells_blind ? &walk.blind : NULL);
}

static bool concerns(const struct watch *watch, const struct inotify_event *event)
{
	if (event->mask & IN_Q_OVERFLOW)
		return true;
	list_for_each(link, &watch->places) {
		const struct place *const place = CONTAINER_OF(link, struct place, link);
		/* Without a name it is the directory itself. */
		if (place->wd == event->wd && (!event->len || !strcmp(place->name, event->name)))
			return true;
	}
	return false;
}

static void on_events(void *ctx, int fd, uint32_t events)
{
	struct watch *const watch = ctx;
	_Alignas(struct inotify_event) char bytes[EVENT_BYTES];
	const ssize_t len = read(fd, bytes, sizeof(bytes));
	bool any = false;

	(void)events;
	for (ssize_t at = 0; at < len;) {
		const struct inotify_event *const event = (const void *)(bytes + at);
		any = any || concerns(watch, event);
		at += (ssize_t)(sizeof(*event) + event->len);
	}
	if (any)
		tell_later(watch);
}

int watch_open(struct loop *loop, watch_fn *changed, void *ctx, struct watch **out, struct err *err)
{
	struct watch *const watch = xcalloc(1, sizeof(*watch));

	watch->loop = loop;
	watch->changed = changed;
	watch->ctx = ctx;
	list_init(&watch->places);
	watch->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (watch->fd >= 0)
		watch->source = loop_add_io(loop, watch->fd, EPOLLIN, LOOP_PRIORITY_NORMAL,
					    on_events, watch);
	if (!watch->source) {
		const int error = errno;
		watch_close(watch);
		return err_set_errno(err, error, "inotify");
	}
	*out = watch;
	return 0;
}

void watch_close(struct watch *watch)
{
	if (!watch)
		return;
	timer_stop(loop_timers(watch->loop), &watch->timer);
	loop_source_free(watch->source);
	if (watch->fd >= 0)
		(void)close(watch->fd);
	free_places(&watch->places);
	free(watch->path);
	free(watch);
}

void watch_set(struct watch *watch, const char *path)
{
	struct walk walk = {.watch = watch};

	if (path == watch->path || (path && watch->path && !strcmp(path, watch->path)))
		return;
	free(watch->path);
	watch->path = path ? xstrdup(path) : NULL;
	watch->told_blind = false;
	timer_stop(loop_timers(watch->loop), &watch->timer);
	/* What it says is said by the callback's own. */
	arm(&walk);
	if (path)
		tell_later(watch);
}
