/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment that a child gets.
 */
#pragma once

struct strv;

/*
 * Copies "NAME=value" strings, ended by NULL, into a zeroed list; without those by which the service
 * manager speaks to us, and to us only.
 */
void child_env_copy(struct strv *env, const char *const *from);
/* Sets a variable, in the place of one of that name. */
void child_env_set(struct strv *env, const char *name, const char *value);
