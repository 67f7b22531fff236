/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/control_socket.h"

#include "broker/base/alloc.h"
#include "broker/base/err.h"
#include "broker/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

/* Beyond it a client that does not block, as curl, fails at once: no queue of SYNs is behind it. */
#define BACKLOG 1024

struct control_socket {
	char *path;
	int lock_fd;
	int fd;
	bool bound; /* the name is ours to remove */
};

static int make_directory(const char *path, struct err *err)
{
	AUTO_FREE char *directory = xstrdup(path);
	char *const slash = strrchr(directory, '/');

	if (!slash || slash == directory)
		return 0;
	*slash = '\0';
	if (mkdir(directory, 0755) == 0) {
		if (chmod(directory, 0755)) /* whatever the umask */
			return err_set_errno(err, errno, "%s", directory);
		return 0;
	}
	if (errno == EEXIST)
		return 0;
	return err_set_errno(
		err, errno,
		"control socket %s: cannot make its directory (make it, or choose another "
		"place with --control)",
		path);
}

static int take_lock(struct control_socket *socket, struct err *err)
{
	AUTO_FREE char *lock = xasprintf("%s.lock", socket->path);

	socket->lock_fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (socket->lock_fd < 0)
		return err_set_errno(err, errno, "control socket: lock %s", lock);
	if (flock(socket->lock_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno == EWOULDBLOCK)
		return err_set(
			err, ERR_SYSTEM,
			"control socket %s: another posternd holds %s; stop it, or choose another "
			"place with --control",
			socket->path, lock);
	return err_set_errno(err, errno, "control socket: lock %s", lock);
}

/* A socket that a killed broker left behind goes; anything else of that name is not ours. */
static int remove_left_over(const char *path, struct err *err)
{
	struct stat st;

	if (lstat(path, &st))
		return errno == ENOENT ? 0 : err_set_errno(err, errno, "control socket %s", path);
	if (!S_ISSOCK(st.st_mode))
		return err_set(err, ERR_INVALID,
			       "control socket %s: exists and is no socket; remove it", path);
	if (unlink(path))
		return err_set_errno(err, errno, "control socket %s", path);
	return 0;
}

static int listen_there(struct control_socket *control, struct err *err)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};

	if (strlen(control->path) >= sizeof(sa.sun_path))
		return err_set(err, ERR_INVALID, "control socket %s: path longer than %zu bytes",
			       control->path, sizeof(sa.sun_path) - 1);
	memcpy(sa.sun_path, control->path, strlen(control->path));
	if (remove_left_over(control->path, err))
		return -1;
	control->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (control->fd < 0 || bind(control->fd, (const struct sockaddr *)&sa, sizeof(sa)))
		return err_set_errno(err, errno, "control socket %s", control->path);
	control->bound = true;
	if (listen(control->fd, BACKLOG))
		return err_set_errno(err, errno, "control socket %s", control->path);
	return 0;
}

static int give_to_group(const struct control_socket_options *options, struct err *err)
{
	const struct group *const group = getgrnam(options->group);

	if (group && !chown(options->path, (uid_t)-1, group->gr_gid) && !chmod(options->path, 0660))
		return 0;
	const char *const why = group ? strerrordesc_np(errno) : "no such group";
	if (options->group_required)
		return err_set(
			err, ERR_INVALID,
			"control socket %s: control_group %s: %s; make the group, or remove the key",
			options->path, options->group, why);
	if (chmod(options->path, 0600))
		return err_set_errno(err, errno, "control socket %s", options->path);
	log_warning("control socket %s: group %s: %s; only this user and root may use it",
		    options->path, options->group, why);
	return 0;
}

int control_socket_open(const struct control_socket_options *options, struct control_socket **out,
			struct err *err)
{
	struct control_socket *const control = xcalloc(1, sizeof(*control));

	control->path = xstrdup(options->path);
	control->lock_fd = -1;
	control->fd = -1;
	if (make_directory(options->path, err) || take_lock(control, err)) {
		/* Not ours to remove. */
		if (control->lock_fd >= 0)
			close(control->lock_fd);
		free(control->path);
		free(control);
		return -1;
	}
	if (listen_there(control, err) || give_to_group(options, err)) {
		control_socket_close(control);
		return -1;
	}
	*out = control;
	return 0;
}

void control_socket_close(struct control_socket *control)
{
	if (!control)
		return;
	if (control->fd >= 0)
		close(control->fd);
	/* The lock's file stays: removing it would let two brokers lock two files of one name. */
	if (control->bound)
		(void)unlink(control->path);
	close(control->lock_fd);
	free(control->path);
	free(control);
}

int control_socket_take_fd(struct control_socket *control)
{
	return TAKE_FD(control->fd);
}

const char *control_socket_path(const struct control_socket *control)
{
	return control->path;
}
