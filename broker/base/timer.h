/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timers on the boot-time clock, as a heap that the loop (or a test) drives. Setting or stopping one
 * costs O(log n) and no system call.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct clock;
struct timer;

typedef void timer_fn(struct timer *timer);

/* Embedded in its owner; zeroed it is stopped. */
struct timer {
	timer_fn *fire;
	int64_t due_ms;	 /* boot time */
	size_t position; /* 1-based place in the heap, 0: stopped */
};

struct timer_queue {
	const struct clock *clock;
	struct timer **heap;
	size_t count;
	size_t capacity;
	/* Called when the earliest due time becomes earlier than it was; may be NULL. */
	void (*earlier)(void *ctx, int64_t due_ms);
	void *earlier_ctx;
};

void timer_queue_init(struct timer_queue *queue, const struct clock *clock);
/* Forgets all timers; those still set become stopped. */
void timer_queue_deinit(struct timer_queue *queue);

/* (Re)sets the timer to fire at due_ms. A time that has passed fires at the next run, never at once. */
void timer_set(struct timer_queue *queue, struct timer *timer, int64_t due_ms, timer_fn *fire);
/* The same, relative to now. */
void timer_set_after(struct timer_queue *queue, struct timer *timer, int64_t delay_ms,
		     timer_fn *fire);
/* Stops it; a stopped or zeroed timer is fine. */
void timer_stop(struct timer_queue *queue, struct timer *timer);

static inline bool timer_is_set(const struct timer *timer)
{
	return timer->position != 0;
}

/* The earliest due time, or -1 where nothing waits. */
int64_t timer_queue_next_ms(const struct timer_queue *queue);

/*
 * Fires what is due now, earliest first, and at most as many timers as were set when it began: a
 * callback that sets one to a time already due cannot hold the caller.
 */
void timer_queue_run(struct timer_queue *queue);
