/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths as text.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stdbool.h>

/* Absolute, without empty, "." and ".." components and a "/" at the end; "/" itself is not. */
bool path_is_normal(const char *path);

/* Nothing in it that means something in an engine's option: commas, quotes, control characters. */
bool path_is_writable_in_options(const char *path);

/* True where `path` is `top` or lies below it. Both normal, or "/". */
bool path_is_within(const char *path, const char *top);

/* "top/below", or top where below is empty. The caller's. */
NODISCARD char *path_join(const char *top, const char *below);

/* The directory where an absolute path is; "/" of what lies there. The caller's. */
NODISCARD char *path_parent(const char *path);

/* That name in the directory where `path` is. The caller's. */
NODISCARD char *path_beside(const char *path, const char *name);

bool path_is_directory(const char *path);
