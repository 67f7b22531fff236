/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/base/file.h"

#include "broker/base/buf.h"
#include "broker/base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

static int read_all(int fd, const char *path, struct buf *out, struct err *err)
{
	char chunk[4096];
	int result = 0;

	for (;;) {
		const ssize_t n = read(fd, chunk, sizeof(chunk));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			result = err_set_errno(err, errno, "%s", path);
		if (n <= 0)
			break;
		if (buf_append(out, chunk, (size_t)n)) {
			result = err_set(err, ERR_INVALID, "%s: larger than %zu bytes", path,
					 out->max_bytes);
			break;
		}
	}
	if (out->sensitive)
		explicit_bzero(chunk, sizeof(chunk));
	return result;
}

int file_read(const char *path, struct buf *out, struct stat *st, struct err *err)
{
	struct stat own;

	/* O_NONBLOCK: a fifo in the file's place must not hold us. */
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return err_set_errno(err, errno, "%s", path);
	if (!st)
		st = &own;
	if (fstat(fd, st))
		return err_set_errno(err, errno, "%s", path);
	if (!S_ISREG(st->st_mode))
		return err_set(err, ERR_INVALID, "%s: not a regular file", path);
	return read_all(fd, path, out, err);
}
