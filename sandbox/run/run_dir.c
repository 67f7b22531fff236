/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/run/run_dir.h"

#include "broker/base/alloc.h"
#include "broker/base/err.h"
#include "sandbox/plan/caller.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

/* A run's directory is two levels deep; what is deeper is not ours. */
#define MAX_DEPTH 4

char *run_dir_base(const struct caller *caller)
{
	const char *const runtime = caller_nonblank(caller, "XDG_RUNTIME_DIR");

	if (runtime && *runtime == '/')
		return xasprintf("%s/postern-runs", runtime);
	if (!caller->uid)
		return xstrdup("/run/postern-runs");
	return xasprintf("/tmp/postern-runs-%u", caller->uid);
}

/* The descriptor of BASE, locked: whoever makes or sweeps runs has it. -1 with a text. */
static int open_base(const char *base, struct err *err)
{
	struct stat st;

	if (mkdir(base, 0700) && errno != EEXIST)
		return err_set_errno(err, errno, "cannot make %s", base);
	AUTO_CLOSE int fd = open(base, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		return err_set_errno(err, errno, "cannot open %s", base);
	if (st.st_uid != geteuid() || st.st_mode & 077)
		return err_set(err, ERR_SYSTEM,
			       "%s is not this user's alone: remove it, or set XDG_RUNTIME_DIR",
			       base);
	if (flock(fd, LOCK_EX))
		return err_set_errno(err, errno, "cannot lock %s", base);
	return TAKE_FD(fd);
}

static int make_folder(int at, const char *name, unsigned mode)
{
	/* The umask may take away what the sandbox needs. */
	return mkdirat(at, name, 0700) || fchmodat(at, name, mode, 0) ? -1 : 0;
}

int run_dir_make(struct run_dir *out, const char *base, const char *id, struct err *err)
{
	AUTO_CLOSE int base_fd = open_base(base, err);

	if (base_fd < 0)
		return -1;
	if (mkdirat(base_fd, id, 0700))
		return err_set_errno(err, errno, "cannot make %s/%s", base, id);
	AUTO_CLOSE int lock = openat(base_fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) || make_folder(lock, RUN_DIR_CREDS, 0755)) {
		const int error = errno;
		(void)unlinkat(base_fd, id, AT_REMOVEDIR);
		return err_set_errno(err, error, "cannot make %s/%s", base, id);
	}
	out->path = xasprintf("%s/%s", base, id);
	out->lock = TAKE_FD(lock);
	return 0;
}

int run_dir_make_folder(const char *path, unsigned mode, struct err *err)
{
	if (make_folder(AT_FDCWD, path, mode))
		return err_set_errno(err, errno, "cannot make %s", path);
	return 0;
}

int run_dir_write(const char *path, unsigned mode, const char *data, size_t len, struct err *err)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0 || fchmod(fd, mode))
		return err_set_errno(err, errno, "cannot write %s", path);
	while (len > 0) {
		const ssize_t n = write(fd, data, len);
		if (n < 0)
			return err_set_errno(err, errno, "cannot write %s", path);
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

static bool is_dots(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

/* One directory open a level: the depth is what is bounded. */
static void empty(int at, const char *name, unsigned depth) /* NOLINT(misc-no-recursion) */
{
	const int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *const dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(dir))) {
		if (is_dots(entry->d_name) || !unlinkat(fd, entry->d_name, 0))
			continue;
		if (depth < MAX_DEPTH)
			empty(fd, entry->d_name, depth + 1);
		(void)unlinkat(fd, entry->d_name, AT_REMOVEDIR);
	}
	(void)closedir(dir);
}

void run_dir_remove_path(const char *path)
{
	empty(AT_FDCWD, path, 0);
	(void)rmdir(path);
}

void run_dir_remove(struct run_dir *dir)
{
	if (!dir->path)
		return;
	run_dir_remove_path(dir->path);
	free(dir->path);
	if (dir->lock >= 0)
		close(dir->lock);
	*dir = (struct run_dir){.lock = -1};
}

static void sweep_one(int base, const char *name)
{
	AUTO_CLOSE int fd = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB))
		return;
	empty(base, name, 0);
	(void)unlinkat(base, name, AT_REMOVEDIR);
}

void run_dir_sweep(const char *base)
{
	struct err ignored;
	AUTO_CLOSE int fd = open_base(base, &ignored);
	const struct dirent *entry;

	if (fd < 0)
		return;
	DIR *const dir = opendir(base);
	while (dir && (entry = readdir(dir)))
		if (!is_dots(entry->d_name))
			sweep_one(fd, entry->d_name);
	if (dir)
		(void)closedir(dir);
}
