/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the process may do and show of itself.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stdbool.h>
#include <stddef.h>

struct err;

/*
 * No core dumps, not dumpable, umask 0077, no ambient capabilities, no privilege by exec; and the three
 * standard descriptors open, so that no socket of ours becomes the log.
 */
void process_harden(void);

/* What is open besides the standard descriptors, inherited or a library's, closes on exec. */
void process_close_on_exec(void);

/*
 * Raises the descriptor limit to the hard limit. An error where that leaves no room for so many
 * sessions and what the broker itself needs.
 */
NODISCARD int process_raise_descriptors(size_t sessions, struct err *err);

/* True where the process runs as a service user: not root, and of the group. */
bool process_is_member(const char *group);
