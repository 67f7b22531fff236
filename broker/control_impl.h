/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the control API. Private to control.c, control_sessions.c and control_open.c.
 */
#pragma once

#include "broker/control.h"

struct broker;
struct http_listener;

struct control {
	struct broker *broker;
	struct http_listener *listener;
};
