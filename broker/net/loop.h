/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one event loop of the process: sd-event with the descriptors, signals, deferred work and the
 * timer queue of everything above it.
 */
#pragma once

#include "broker/base/compiler.h"
#include "broker/base/timer.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct loop;
struct loop_source;

/* Order in which ready sources are served; see architecture section 2. */
enum loop_priority {
	LOOP_PRIORITY_SIGNAL = -20,
	LOOP_PRIORITY_CONTROL = -10,
	LOOP_PRIORITY_NORMAL = 0,
	/* Work that sets itself ready again: anything better would starve the rest. */
	LOOP_PRIORITY_MORE = 10,
};

typedef void loop_io_fn(void *ctx, int fd, uint32_t events);
typedef void loop_signal_fn(void *ctx, int signo);
typedef void loop_defer_fn(void *ctx);
typedef void loop_child_fn(void *ctx, const siginfo_t *info);

NODISCARD int loop_new(struct loop **out, struct err *err);
/* NULL is fine. Every source must have been freed. */
void loop_free(struct loop *loop);

/* Timers of this loop, on its clock. */
struct timer_queue *loop_timers(struct loop *loop);

/* Turns until loop_exit(); returns the code given there, or -1. */
NODISCARD int loop_run(struct loop *loop, struct err *err);
void loop_exit(struct loop *loop, int code);
/*
 * One turn: waits until something is ready and serves it. For a program that is a sequence of waits; not
 * from inside a callback.
 */
NODISCARD int loop_turn(struct loop *loop, struct err *err);

/*
 * Watches a descriptor for epoll events (EPOLLHUP and EPOLLERR always). Level-triggered. The descriptor
 * stays the caller's and must outlive the source. NULL with errno set where the kernel refuses.
 */
NODISCARD struct loop_source *loop_add_io(struct loop *loop, int fd, uint32_t events,
					  int64_t priority, loop_io_fn *fn, void *ctx);
/* Calls fn once from the loop each time the source is readied; starts unready. Never fails. */
NODISCARD struct loop_source *loop_add_defer(struct loop *loop, int64_t priority, loop_defer_fn *fn,
					     void *ctx);
/* Blocks the signal and delivers it from the loop. NULL with errno set where the kernel refuses. */
NODISCARD struct loop_source *loop_add_signal(struct loop *loop, int signo, loop_signal_fn *fn,
					      void *ctx);

/*
 * Calls fn once when the child process has ended; it is reaped after that. By a pidfd where the kernel
 * has one; SIGCHLD is blocked from here on. NULL with errno set where the kernel refuses.
 */
NODISCARD struct loop_source *loop_add_child(struct loop *loop, pid_t pid, loop_child_fn *fn,
					     void *ctx);

void loop_io_set_events(struct loop_source *source, uint32_t events);
/* An io source that is off sees nothing, not even a hang-up. */
void loop_io_set_enabled(struct loop_source *source, bool enabled);
void loop_defer_ready(struct loop_source *source);
/* NULL is fine; also from inside the source's own callback. */
void loop_source_free(struct loop_source *source);

/* sd_notify(3); nothing where there is no manager. Watchdog pings need no call. */
void loop_notify(const char *state);
/* RELOADING=1 with the time that goes with it; READY=1 ends it. */
void loop_notify_reloading(void);
