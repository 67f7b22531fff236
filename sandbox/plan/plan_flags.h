/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's flags of a plan: confinement, the way to the host, what the caller passes on.
 */
#pragma once

#include "broker/base/compiler.h"

struct err;
struct plan;
struct run_options;

/* ERR_UNSUPPORTED: a working directory outside the workspace; ERR_INVALID: no way to the host is known. */
NODISCARD int plan_add_flags(struct plan *plan, const struct run_options *options, struct err *err);

/* Adds one line that the caller should read. */
void plan_warn(struct plan *plan, const char *fmt, ...) PRINTF_LIKE(2, 3);
