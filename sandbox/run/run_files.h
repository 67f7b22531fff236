/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run has on disk: written before its container, removed after it.
 */
#pragma once

#include "broker/base/compiler.h"
#include "sandbox/run/run_dir.h"

struct err;
struct run_inputs;
struct token_follow;

struct run_files {
	struct run_dir dir;
	struct token_follow *tokens;
};

/* Writes all of it. What was written is removed again where something fails. */
NODISCARD int run_files_make(struct run_files *files, const struct run_inputs *inputs,
			     struct err *err);
/* A zeroed or failed one is fine. */
void run_files_remove(struct run_files *files);
