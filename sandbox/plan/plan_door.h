/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The door's part of a plan: the container that holds the sandbox's network namespace and opens the
 * endpoint in it.
 */
#pragma once

#include "broker/base/compiler.h"

struct err;
struct plan;
struct plan_inputs;

/* Where things are in the door's container; postern-door looks for them there. */
#define PLAN_DOOR_PROGRAM "/postern-door"
#define PLAN_DOOR_ATTACH "/attach"
#define PLAN_DOOR_TICKET "/door"
/* What the sandbox finds its endpoint by, beside the address. */
#define PLAN_METADATA_ADDRESS "169.254.169.254"
#define PLAN_METADATA_NAME "metadata.google.internal"
#define PLAN_METADATA_SHORT_NAME "metadata"

/* Nothing where the plan has no door. ERR_UNSUPPORTED: none can be had here. */
NODISCARD int plan_add_door(struct plan *plan, const struct plan_inputs *inputs, struct err *err);

/* Makes the door's argument vector anew from the rest of the plan. */
void plan_render_door(struct plan *plan);
