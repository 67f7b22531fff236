/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control socket's place in the file system: one broker at a time, known by a lock beside it.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stdbool.h>

struct control_socket;
struct err;

struct control_socket_options {
	const char *path;
	const char *group;   /* that may use it */
	bool group_required; /* the operator wrote it down */
};

/*
 * Takes the lock PATH.lock, removes a left-over socket and listens. The directory is made where only it
 * is missing. Mode 0660 for the group; where the group cannot be set, 0600 and a warning, or an error
 * if it is required. Errors name the path and the repair.
 */
NODISCARD int control_socket_open(const struct control_socket_options *options,
				  struct control_socket **out, struct err *err);
/* Removes the socket and gives the lock back. NULL is fine. */
void control_socket_close(struct control_socket *control);

/* The listening descriptor; becomes the caller's, once. */
int control_socket_take_fd(struct control_socket *control);
const char *control_socket_path(const struct control_socket *control);
