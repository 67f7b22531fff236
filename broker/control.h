/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control API: HTTP and JSON on the control socket.
 */
#pragma once

#include "broker/base/compiler.h"

struct broker;
struct control;
struct err;

/* Serves the listening descriptor, which it takes. The broker must outlive it. */
NODISCARD int control_open(struct broker *broker, int takes_fd, struct control **out,
			   struct err *err);
/* NULL is fine. */
void control_close(struct control *control);
