/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes what a crash left: containers of this owner whose launcher is dead.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct engine;
struct engine_call;

/* Field 22 of /proc/PID/stat: with the pid it names one process. 0 where there is none. */
uint64_t sweep_start_of(pid_t pid);

/* Begins to look for them, while the caller does something else. The caller's, as an engine_call. */
struct engine_call *sweep_look(const struct engine *engine, const char *owner);
/* Removes what was found. What does not work is a notice, never a failure. Takes the look. */
void sweep_finish(const struct engine *engine, struct engine_call *takes_look);
