/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The argument vector and the environment file of a plan.
 */
#pragma once

struct plan;
struct strv;

/* Makes the argument vectors and env_file_text anew from the rest of the plan. */
void plan_render(struct plan *plan);

/* The labels by which what a launcher left is found. */
void plan_add_labels(const struct plan *plan, struct strv *argv);
