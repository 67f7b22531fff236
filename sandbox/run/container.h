/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `inspect` says of a container; the same for both engines.
 */
#pragma once

#include "broker/base/compiler.h"
#include "sandbox/plan/plan.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* More addresses than a session may have are not read. */
#define CONTAINER_MAX_ADDRESSES 8

struct container {
	bool running;
	bool started; /* it runs, or has run */
	bool oom_killed;
	int exit_status;
	json_t *addresses; /* of strings, on all of its networks; empty before it starts */
	/* Who started it; 0 where its labels do not say. */
	struct plan_launcher launcher;
};

#define AUTO_CONTAINER CLEANUP(container_deinit)

void container_deinit(struct container *container);
/* The first of the array that `inspect` prints, into a zeroed one. -1 where it is none. */
NODISCARD int container_read(struct container *out, const char *bytes, size_t len);
