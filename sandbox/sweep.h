/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes what a crash left: containers of this owner whose launcher is dead.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct engine;

/* Field 22 of /proc/PID/stat: with the pid it names one process. 0 where there is none. */
uint64_t sweep_start_of(pid_t pid);

/* What does not work is a notice, never a failure. */
void sweep_owner(const struct engine *engine, const char *owner);
