/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executes a plan: session, container, pin; and takes everything away again, whatever happens.
 */
#pragma once

#include "broker/base/compiler.h"

struct broker_client;
struct engine;
struct kubeconfig;
struct loop;
struct plan;

/* Borrowed for the time of the run. */
struct run_inputs {
	struct loop *loop;
	struct engine *engine;
	struct broker_client *client;	     /* NULL: the plan wants no session */
	const struct kubeconfig *kubeconfig; /* NULL: none crosses */
	struct plan *plan;
	const char *base; /* of run_dir_make(); the plan's directory is in it */
};

/* Returns the exit status of contract 8; what went wrong is said on standard error. */
NODISCARD int run_execute(const struct run_inputs *inputs);
