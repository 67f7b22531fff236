/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop and a client of the control API for a command that asks and ends.
 */
#pragma once

#include "broker/base/compiler.h"

struct broker_client;
struct err;
struct invocation;
struct loop;

struct control_connection {
	struct loop *loop;
	struct broker_client *client;
};

#define AUTO_CONTROL_CONNECTION CLEANUP(control_connection_close)

/* `control` is the command's own --control or NULL. Returns the exit status; closed also after a failure. */
NODISCARD int control_connection_open(struct control_connection *connection,
				      const struct invocation *invocation, const char *control,
				      struct err *err);
/* A zeroed one is fine. */
void control_connection_close(struct control_connection *connection);
