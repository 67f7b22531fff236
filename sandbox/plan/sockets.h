/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets through which a sandbox would command the host: the engines' own and the broker's.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stdbool.h>

struct mount_guard;

/* By its name: docker.sock, podman.sock and their like. */
bool socket_is_engines(const char *path);

/*
 * Looks for one in a directory and below, by name or because it is the same file as one that is known; links
 * are not followed (they end inside the sandbox). Gives the first one's path, the caller's to free.
 */
bool socket_find_engines(const char *directory, const struct mount_guard *guard, char **found);
