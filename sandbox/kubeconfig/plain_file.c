/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/kubeconfig/plain_file.h"

#include "broker/base/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static const char *reason_of(int errnum)
{
	switch (errnum) {
	case ENOENT:
	case ENOTDIR:
		return "does not exist";
	case EACCES:
	case EPERM:
		return "may not be read";
	case ELOOP:
		return "is a symlink";
	default:
		return "cannot be read";
	}
}

static const char *read_all(int fd, struct buf *out)
{
	char chunk[4096];
	const char *why = NULL;

	while (!why) {
		const ssize_t n = read(fd, chunk, sizeof(chunk));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			why = reason_of(errno);
		else if (!n)
			break;
		else if (buf_append(out, chunk, (size_t)n))
			why = "is too large";
	}
	explicit_bzero(chunk, sizeof(chunk));
	return why;
}

const char *plain_file_read(const char *path, bool follow, struct buf *out)
{
	struct stat st;

	/* O_NONBLOCK: a fifo in the file's place must not hold us. */
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY |
					       (follow ? 0 : O_NOFOLLOW));
	if (fd < 0 || fstat(fd, &st))
		return reason_of(errno);
	if (!S_ISREG(st.st_mode))
		return "is not a regular file";
	return read_all(fd, out);
}
