/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The signals of a run: taken by the loop, and handed to whoever the command's client is then.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stddef.h>

struct child;
struct err;
struct loop;
struct loop_source;

#define SIGNALS_COUNT 7

struct signals {
	struct loop_source *sources[SIGNALS_COUNT];
	struct child *target; /* gets each signal once; NULL: nobody yet */
	int ending;	      /* the last one that asks to end; 0: none came */
};

/* Until signals_deinit() none of them has its default effect. */
NODISCARD int signals_init(struct signals *signals, struct loop *loop, struct err *err);
void signals_deinit(struct signals *signals);

/* The child that gets signals from now on; NULL: none. Borrowed. */
void signals_set_target(struct signals *signals, struct child *target);
