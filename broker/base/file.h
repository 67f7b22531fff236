/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small files, read whole.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stddef.h>
#include <sys/stat.h>

struct buf;
struct err;

/*
 * Appends the regular file `path` to `out`, at most the buffer's max_bytes. `st`, if not NULL, gets the
 * status of exactly the file that was read. Errors name the path.
 */
NODISCARD int file_read(const char *path, struct buf *out, struct stat *st, struct err *err);
