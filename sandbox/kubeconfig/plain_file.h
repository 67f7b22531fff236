/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that another file names: read whole, or not at all and with a reason that names neither the
 * path nor the content.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stdbool.h>

struct buf;

/*
 * Appends the regular file to `out`, at most the buffer's max_bytes; a symlink in the last part of the
 * path is followed only where `follow` says so. NULL, or why not, as "is a symlink": a constant.
 */
NODISCARD const char *plain_file_read(const char *path, bool follow, struct buf *out);
