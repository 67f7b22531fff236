/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/run/cidfile.h"

#include <fcntl.h>
#include <string.h>

int cidfile_read(const char *path, char id[static CIDFILE_ID_SIZE])
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return -1;
	const ssize_t n = read(fd, id, CIDFILE_ID_SIZE - 1);
	if (n != CIDFILE_ID_SIZE - 1)
		return -1;
	id[n] = '\0';
	return strspn(id, "0123456789abcdef") == CIDFILE_ID_SIZE - 1 ? 0 : -1;
}
