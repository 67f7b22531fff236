/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The argument vector and the environment file of a plan.
 */
#pragma once

struct plan;

/* Makes argv and env_file_text anew from the rest of the plan. */
void plan_render(struct plan *plan);
