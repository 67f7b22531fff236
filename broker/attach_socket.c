/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/attach_socket.h"

#include "broker/base/alloc.h"
#include "broker/base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define NAME "sock"
#define PLACE "private/attach/" NAME /* in errors */
#define BACKLOG 1024

struct attach_socket {
	char *directory;
	int directory_fd;
	int lock_fd;
	int fd;
	bool bound; /* the name is ours to remove */
};

/*
 * Of whoever may write beside the control socket, a directory of another user could be there.
 * The descriptor, or -1.
 */
static int make_directory(int parent_fd, const char *path, mode_t mode, struct err *err)
{
	const char *const slash = strrchr(path, '/');
	const char *const name = slash ? slash + 1 : path;
	struct stat st;

	if (mkdirat(parent_fd, name, mode) && errno != EEXIST)
		return err_set_errno(err, errno, "%s", path);
	AUTO_CLOSE int fd =
		openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		return err_set_errno(err, errno, "%s", path);
	if (st.st_uid != geteuid())
		return err_set(err, ERR_INVALID,
			       "%s: belongs to uid %u; remove it, or give the control socket a "
			       "directory of its own",
			       path, st.st_uid);
	if (fchmod(fd, mode)) /* whatever the umask */
		return err_set_errno(err, errno, "%s", path);
	return TAKE_FD(fd);
}

static int take_lock(struct attach_socket *attach, int private_fd, struct err *err)
{
	attach->lock_fd =
		openat(private_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (attach->lock_fd < 0)
		return err_set_errno(err, errno, "private/lock");
	if (flock(attach->lock_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno == EWOULDBLOCK)
		return err_set(
			err, ERR_BUSY,
			"private/lock: another posternd holds it; give each control socket a "
			"directory of its own");
	return err_set_errno(err, errno, "private/lock");
}

/* A socket that a killed broker left behind goes; anything else of that name is not ours. */
static int remove_left_over(int directory_fd, struct err *err)
{
	struct stat st;

	if (fstatat(directory_fd, NAME, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : err_set_errno(err, errno, PLACE);
	if (!S_ISSOCK(st.st_mode))
		return err_set(err, ERR_INVALID, PLACE ": exists and is no socket; remove it");
	return unlinkat(directory_fd, NAME, 0) ? err_set_errno(err, errno, PLACE) : 0;
}

/*
 * Binds by the bare name, from inside the directory: /proc/net/unix of every door's namespace shows the
 * name that was bound, and a long path does not fit.
 */
static int bind_there(struct attach_socket *attach, struct err *err)
{
	const struct sockaddr_un sa = {.sun_family = AF_UNIX, .sun_path = NAME};
	AUTO_CLOSE const int before = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (before < 0 || fchdir(attach->directory_fd))
		return err_set_errno(err, errno, "private/attach");
	const bool bound = !bind(attach->fd, (const struct sockaddr *)&sa, sizeof(sa)) &&
			   !chmod(NAME, 0666); /* whatever the umask */
	const int errnum = errno;
	if (fchdir(before))
		return err_set_errno(err, errno, "the working directory");
	attach->bound = true;
	return bound ? 0 : err_set_errno(err, errnum, PLACE);
}

static int listen_there(struct attach_socket *attach, struct err *err)
{
	if (remove_left_over(attach->directory_fd, err))
		return -1;
	attach->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (attach->fd < 0)
		return err_set_errno(err, errno, PLACE);
	if (bind_there(attach, err))
		return -1;
	return listen(attach->fd, BACKLOG) ? err_set_errno(err, errno, PLACE) : 0;
}

static int open_below(struct attach_socket *attach, const char *parent, struct err *err)
{
	AUTO_CLOSE const int parent_fd = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (parent_fd < 0)
		return err_set_errno(err, errno, "%s", parent);
	AUTO_CLOSE const int private_fd = make_directory(parent_fd, "private", 0700, err);
	if (private_fd < 0 || take_lock(attach, private_fd, err))
		return err_prefix(err, "%s", parent);
	attach->directory_fd = make_directory(private_fd, "private/attach", 0755, err);
	if (attach->directory_fd < 0 || listen_there(attach, err))
		return err_prefix(err, "%s", parent);
	AUTO_FREE char *path = xasprintf("%s/private/attach", parent);
	attach->directory = realpath(path, NULL);
	return attach->directory ? 0 : err_set_errno(err, errno, "%s", path);
}

static char *parent_of(const char *path)
{
	const char *const slash = strrchr(path, '/');

	if (!slash)
		return xstrdup(".");
	return slash == path ? xstrdup("/") : xstrndup(path, (size_t)(slash - path));
}

int attach_socket_open(const char *control_path, struct attach_socket **out, struct err *err)
{
	struct attach_socket *const attach = xcalloc(1, sizeof(*attach));
	AUTO_FREE char *parent = parent_of(control_path);

	attach->directory_fd = -1;
	attach->lock_fd = -1;
	attach->fd = -1;
	if (open_below(attach, parent, err)) {
		attach_socket_close(attach);
		return -1;
	}
	*out = attach;
	return 0;
}

void attach_socket_close(struct attach_socket *attach)
{
	if (!attach)
		return;
	if (attach->fd >= 0)
		close(attach->fd);
	if (attach->bound)
		(void)unlinkat(attach->directory_fd, NAME, 0);
	if (attach->directory_fd >= 0)
		close(attach->directory_fd);
	if (attach->lock_fd >= 0)
		close(attach->lock_fd);
	free(attach->directory);
	free(attach);
}

int attach_socket_fd(const struct attach_socket *attach)
{
	return attach->fd;
}

const char *attach_socket_directory(const struct attach_socket *attach)
{
	return attach->directory;
}
