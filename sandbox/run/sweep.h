/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes what a crash left: containers of this owner whose launcher is dead.
 */
#pragma once

struct engine;
struct engine_call;
struct plan_launcher;

/* What a later sweep knows this process by; a member that cannot be read is 0, and nothing is swept by it. */
void sweep_name_self(struct plan_launcher *self);

/* Begins to look for them, while the caller does something else. The caller's, as an engine_call. */
struct engine_call *sweep_look(const struct engine *engine, const char *owner);
/* Removes what was found. What does not work is a notice, never a failure. Takes the look. */
void sweep_finish(const struct engine *engine, struct engine_call *takes_look);
