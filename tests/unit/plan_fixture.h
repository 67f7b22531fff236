/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of a plan under test. Everything that a test does not set is as on a plain machine with Docker.
 */
#pragma once

#include "broker/base/err.h"
#include "broker/base/strv.h"
#include "sandbox/plan/caller.h"
#include "sandbox/plan/plan.h"

#include <stddef.h>

#define PLAN_MAX_ARGUMENTS 32
#define PLAN_PRINT_MAX_BYTES ((size_t)1 << 20)
#define SESSION_ID "0123456789abcdef"
#define DIRECTORY "/run/postern-runs/00112233aabbccdd"

struct run {
	char *argv[PLAN_MAX_ARGUMENTS];
	struct run_options options;
	struct caller caller;
	struct engine_facts engine;
	struct strv nameservers;
	struct plan_inputs inputs;
	struct plan *plan;
	struct err err;
};

/* `postern run --attach ATTACH ARGUMENT...`; `arguments` ends with NULL and must outlive the run. */
void run_init_attached(struct run *run, const char *attach, const char *const arguments[]);
void run_deinit(struct run *run);

#define AUTO_RUN CLEANUP(run_deinit)

/* The plan; the test fails where there is none. Borrowed. */
struct plan *plan_good(struct run *run);

/* Where it is in the list; SIZE_MAX: nowhere. */
size_t position(const struct strv *list, const char *item);
