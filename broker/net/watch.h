/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that others rewrite: when to look at it again. By inotify on the directories that its path goes
 * through, since what is renamed over a file, or swapped as a link on the way to it, says nothing there.
 */
#pragma once

#include "broker/base/compiler.h"

struct err;
struct loop;
struct watch;

/*
 * The file may have changed, which may be once too often, and never twice within WATCH_QUIET_MS. `blind`
 * is NULL, or says, the first time, what part of the path cannot be watched.
 */
typedef void watch_fn(void *ctx, const struct err *blind);

/* A change is told after so long without another one, or so long after the first. */
#define WATCH_QUIET_MS 75
#define WATCH_LATEST_MS 500

/* Watches nothing yet. */
NODISCARD int watch_open(struct loop *loop, watch_fn *changed, void *ctx, struct watch **out,
			 struct err *err);
/* NULL is fine. Not from inside the callback. */
void watch_close(struct watch *watch);

/*
 * Watches this path instead of the one before; NULL: none. The callback comes once soon after, for what
 * has changed since the caller looked. The same path again changes nothing.
 */
void watch_set(struct watch *watch, const char *path);
