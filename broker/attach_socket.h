/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attach socket's place in the file system, beside the control socket: `private/`, which only the
 * broker's user may pass, holds `attach/`, which a container engine binds into a door, and that holds
 * the socket `sock`, which whoever sees it may use.
 */
#pragma once

#include "broker/base/compiler.h"

struct attach_socket;
struct err;

/*
 * Makes the directories, takes the lock `private/lock`, removes a left-over socket and listens. The
 * directories stay when the broker goes: a door's view of `attach/` is to outlive it. The name that the
 * kernel shows of the socket, also inside the sandbox, has no directory in it.
 */
NODISCARD int attach_socket_open(const char *control_path, struct attach_socket **out,
				 struct err *err);
/* Removes the socket and gives the lock back. NULL is fine. */
void attach_socket_close(struct attach_socket *attach);

/* The listening descriptor; borrowed. */
int attach_socket_fd(const struct attach_socket *attach);
/* The absolute path of `private/attach`. */
const char *attach_socket_directory(const struct attach_socket *attach);
