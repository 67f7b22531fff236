/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who removes the containers when the launcher cannot: a process in a session of its own that waits for
 * the end of a socket, which comes also when the launcher is killed.
 */
#pragma once

#include "broker/base/compiler.h"

#include <sys/types.h>

struct environ_block;
struct err;

struct reaper {
	int socket; /* -1: none runs */
};

/* All of it is copied with the process. */
struct reaper_task {
	const char *binary;		     /* of the engine */
	const struct environ_block *environ; /* of its calls */
	const char *container;		     /* the sandbox's name */
	const char *door;		     /* its door's, removed after it; NULL: it has none */
	const char *directory;		     /* of the run; removed last */
};

NODISCARD int reaper_start(struct reaper *reaper, const struct reaper_task *task, struct err *err);
/*
 * The engine's client that runs the sandbox: it is killed first. One that lives as long as the run, so that
 * its number is its own when the reaper hears of it.
 */
void reaper_tell_client(const struct reaper *reaper, pid_t client);
/* All is removed already: it ends and does nothing. */
void reaper_dismiss(struct reaper *reaper);
/* It is left to do its work: a container could not be removed, or may still be in the making. */
void reaper_leave(struct reaper *reaper);
