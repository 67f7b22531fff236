/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run's end means: the command's own status, or whose fault it is.
 */
#pragma once

#include "broker/net/child.h"

#include <stdbool.h>

struct engine;
struct plan;

/* The status of what signal n has ended. */
#define SIGNALLED(signo) (128 + (signo))

/* How the engine's client that held the sandbox ended. */
struct run_client_end {
	bool over;
	enum child_end end;
	int status;
};

/* Asks the engine for what the client's status leaves open, and says on standard error what the user should know. */
int run_outcome(const struct engine *engine, const struct plan *plan,
		const struct run_client_end *end);

/* The engine has made the sandbox's container. */
bool run_is_made(const struct plan *plan);
