/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens the door of a run: makes and starts its container and, meanwhile, makes the sandbox's, which is not
 * started before the endpoint in its network namespace is the broker's.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stdbool.h>

struct door;
struct engine;
struct err;
struct lease;
struct loop;
struct plan;

enum door_state {
	DOOR_OPENING,
	DOOR_OPEN,   /* the sandbox may start */
	DOOR_FAILED, /* door_failure() says why */
};

/* Borrowed as long as the door. */
struct door_inputs {
	struct loop *loop;
	const struct engine *engine;
	struct plan *plan;	   /* its session is bound; the door's id is put in */
	const struct lease *lease; /* of an inside session that is there */
};

/* Starts; the ticket is written first. The caller turns the loop and calls door_look() after each turn. */
NODISCARD int door_new(const struct door_inputs *inputs, struct door **out, struct err *err);
/* Ends what it is doing; containers stay. NULL is fine. */
void door_free(struct door *door);

enum door_state door_look(struct door *door);
/* Of a failed one: the exit status, with a text. */
int door_failure(const struct door *door, struct err *err);

/* The engine is being asked for a container: it may make it also when nobody waits for that any more. */
bool door_is_making(const struct door *door);
