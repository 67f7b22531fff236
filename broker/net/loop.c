/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/net/loop.h"

#include "broker/base/alloc.h"
#include "broker/base/clock.h"
#include "broker/base/err.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>
#include <time.h>

/* How late a timer may come, so that the kernel can join wake-ups. */
#define TIMER_ACCURACY_US 1000

struct loop {
	sd_event *event;
	struct timer_queue timers;
	sd_event_source *timer_source;
	int64_t armed_ms; /* what timer_source is set to; INT64_MAX: off */
};

struct loop_source {
	sd_event_source *source;
	union {
		loop_io_fn *io;
		loop_defer_fn *defer;
		loop_signal_fn *signal;
		loop_child_fn *child;
	} fn;
	void *ctx;
};

static void arm(struct loop *loop, int64_t due_ms)
{
	const uint64_t due_us = due_ms > 0 ? (uint64_t)due_ms * 1000 : 0;

	loop->armed_ms = due_ms;
	(void)sd_event_source_set_time(loop->timer_source, due_us);
	(void)sd_event_source_set_enabled(loop->timer_source, SD_EVENT_ONESHOT);
}

/* Only an earlier due time reaches the kernel: a timer that moves back costs no system call. */
static void on_earlier(void *ctx, int64_t due_ms)
{
	struct loop *const loop = ctx;

	if (due_ms < loop->armed_ms)
		arm(loop, due_ms);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *ctx)
{
	struct loop *const loop = ctx;

	(void)source;
	(void)usec;
	loop->armed_ms = INT64_MAX;
	timer_queue_run(&loop->timers);
	const int64_t next_ms = timer_queue_next_ms(&loop->timers);
	if (next_ms >= 0 && next_ms < loop->armed_ms)
		arm(loop, next_ms);
	return 0;
}

int loop_new(struct loop **out, struct err *err)
{
	struct loop *const loop = xcalloc(1, sizeof(*loop));

	loop->armed_ms = INT64_MAX;
	timer_queue_init(&loop->timers, clock_system());
	loop->timers.earlier = on_earlier;
	loop->timers.earlier_ctx = loop;
	int r = sd_event_new(&loop->event);
	if (r >= 0)
		r = sd_event_add_time(loop->event, &loop->timer_source, CLOCK_BOOTTIME, 0,
				      TIMER_ACCURACY_US, on_timer, loop);
	if (r >= 0)
		r = sd_event_source_set_enabled(loop->timer_source, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_set_watchdog(loop->event, 1);
	if (r < 0) {
		loop_free(loop);
		return err_set_errno(err, -r, "event loop");
	}
	*out = loop;
	return 0;
}

void loop_free(struct loop *loop)
{
	if (!loop)
		return;
	timer_queue_deinit(&loop->timers);
	sd_event_source_unref(loop->timer_source);
	sd_event_unref(loop->event);
	free(loop);
}

struct timer_queue *loop_timers(struct loop *loop)
{
	return &loop->timers;
}

int loop_run(struct loop *loop, struct err *err)
{
	const int r = sd_event_loop(loop->event);

	return r < 0 ? err_set_errno(err, -r, "event loop") : r;
}

void loop_exit(struct loop *loop, int code)
{
	(void)sd_event_exit(loop->event, code);
}

int loop_turn(struct loop *loop, struct err *err)
{
	const int r = sd_event_run(loop->event, UINT64_MAX);

	return r < 0 ? err_set_errno(err, -r, "event loop") : 0;
}

static int on_io(sd_event_source *event_source, int fd, uint32_t events, void *ctx)
{
	const struct loop_source *const source = ctx;

	(void)event_source;
	source->fn.io(source->ctx, fd, events);
	return 0;
}

static int on_defer(sd_event_source *event_source, void *ctx)
{
	const struct loop_source *const source = ctx;

	(void)event_source;
	source->fn.defer(source->ctx);
	return 0;
}

static int on_signal(sd_event_source *event_source, const struct signalfd_siginfo *info, void *ctx)
{
	const struct loop_source *const source = ctx;

	(void)event_source;
	source->fn.signal(source->ctx, (int)info->ssi_signo);
	return 0;
}

static int on_child(sd_event_source *event_source, const siginfo_t *info, void *ctx)
{
	const struct loop_source *const source = ctx;

	(void)event_source;
	source->fn.child(source->ctx, info);
	return 0;
}

/* Takes the new source; gives it its priority. */
static struct loop_source *finish(struct loop_source *source, int r, int64_t priority)
{
	if (r >= 0)
		r = sd_event_source_set_priority(source->source, priority);
	if (r < 0) {
		loop_source_free(source);
		errno = -r;
		return NULL;
	}
	return source;
}

struct loop_source *loop_add_io(struct loop *loop, int fd, uint32_t events, int64_t priority,
				loop_io_fn *fn, void *ctx)
{
	struct loop_source *const source = xcalloc(1, sizeof(*source));

	source->fn.io = fn;
	source->ctx = ctx;
	return finish(source,
		      sd_event_add_io(loop->event, &source->source, fd, events, on_io, source),
		      priority);
}

struct loop_source *loop_add_defer(struct loop *loop, int64_t priority, loop_defer_fn *fn,
				   void *ctx)
{
	struct loop_source *const source = xcalloc(1, sizeof(*source));

	source->fn.defer = fn;
	source->ctx = ctx;
	int r = sd_event_add_defer(loop->event, &source->source, on_defer, source);
	if (r >= 0)
		r = sd_event_source_set_enabled(source->source, SD_EVENT_OFF);
	/* No descriptor is behind a defer source: only memory could lack. */
	if (!finish(source, r, priority))
		abort();
	return source;
}

static void block(int signo)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, signo);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
}

struct loop_source *loop_add_child(struct loop *loop, pid_t pid, loop_child_fn *fn, void *ctx)
{
	struct loop_source *const source = xcalloc(1, sizeof(*source));

	block(SIGCHLD);
	source->fn.child = fn;
	source->ctx = ctx;
	return finish(source,
		      sd_event_add_child(loop->event, &source->source, pid, WEXITED, on_child,
					 source),
		      LOOP_PRIORITY_NORMAL);
}

struct loop_source *loop_add_signal(struct loop *loop, int signo, loop_signal_fn *fn, void *ctx)
{
	struct loop_source *const source = xcalloc(1, sizeof(*source));

	block(signo);
	source->fn.signal = fn;
	source->ctx = ctx;
	return finish(source,
		      sd_event_add_signal(loop->event, &source->source, signo, on_signal, source),
		      LOOP_PRIORITY_SIGNAL);
}

void loop_io_set_events(struct loop_source *source, uint32_t events)
{
	(void)sd_event_source_set_io_events(source->source, events);
}

void loop_io_set_enabled(struct loop_source *source, bool enabled)
{
	(void)sd_event_source_set_enabled(source->source, enabled ? SD_EVENT_ON : SD_EVENT_OFF);
}

void loop_defer_ready(struct loop_source *source)
{
	(void)sd_event_source_set_enabled(source->source, SD_EVENT_ONESHOT);
}

void loop_source_free(struct loop_source *source)
{
	if (!source)
		return;
	/* A running callback's own source goes when it returns; the wrapper is not used after it. */
	sd_event_source_disable_unref(source->source);
	free(source);
}

void loop_notify(const char *state)
{
	(void)sd_notify(0, state);
}

void loop_notify_reloading(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	(void)sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%lld",
			 (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000);
}
