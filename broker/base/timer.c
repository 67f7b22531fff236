/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/base/timer.h"

#include "broker/base/alloc.h"
#include "broker/base/clock.h"

void timer_queue_init(struct timer_queue *queue, const struct clock *clock)
{
	*queue = (struct timer_queue){.clock = clock};
}

void timer_queue_deinit(struct timer_queue *queue)
{
	for (size_t i = 0; i < queue->count; i++)
		queue->heap[i]->position = 0;
	free(queue->heap);
	*queue = (struct timer_queue){0};
}

static void place(struct timer_queue *queue, size_t index, struct timer *timer)
{
	queue->heap[index] = timer;
	timer->position = index + 1;
}

static void sift_up(struct timer_queue *queue, size_t index)
{
	struct timer *const timer = queue->heap[index];

	while (index > 0) {
		const size_t parent = (index - 1) / 2;
		if (queue->heap[parent]->due_ms <= timer->due_ms)
			break;
		place(queue, index, queue->heap[parent]);
		index = parent;
	}
	place(queue, index, timer);
}

static void sift_down(struct timer_queue *queue, size_t index)
{
	struct timer *const timer = queue->heap[index];

	for (;;) {
		size_t child = 2 * index + 1;
		if (child >= queue->count)
			break;
		if (child + 1 < queue->count &&
		    queue->heap[child + 1]->due_ms < queue->heap[child]->due_ms)
			child++;
		if (timer->due_ms <= queue->heap[child]->due_ms)
			break;
		place(queue, index, queue->heap[child]);
		index = child;
	}
	place(queue, index, timer);
}

void timer_stop(struct timer_queue *queue, struct timer *timer)
{
	if (!timer->position)
		return;
	const size_t index = timer->position - 1;
	struct timer *const last = queue->heap[--queue->count];
	timer->position = 0;
	if (last == timer)
		return;
	place(queue, index, last);
	sift_up(queue, index);
	sift_down(queue, last->position - 1);
}

void timer_set(struct timer_queue *queue, struct timer *timer, int64_t due_ms, timer_fn *fire)
{
	const int64_t before_ms = timer_queue_next_ms(queue);

	timer_stop(queue, timer);
	if (queue->count == queue->capacity) {
		queue->capacity = queue->capacity ? queue->capacity * 2 : 64;
		queue->heap = xreallocarray(queue->heap, queue->capacity, sizeof(struct timer *));
	}
	timer->due_ms = due_ms;
	timer->fire = fire;
	place(queue, queue->count++, timer);
	sift_up(queue, timer->position - 1);
	if (queue->earlier && (before_ms < 0 || due_ms < before_ms))
		queue->earlier(queue->earlier_ctx, due_ms);
}

void timer_set_after(struct timer_queue *queue, struct timer *timer, int64_t delay_ms,
		     timer_fn *fire)
{
	timer_set(queue, timer, clock_boot_ms(queue->clock) + delay_ms, fire);
}

int64_t timer_queue_next_ms(const struct timer_queue *queue)
{
	return queue->count ? queue->heap[0]->due_ms : -1;
}

void timer_queue_run(struct timer_queue *queue)
{
	const int64_t now_ms = clock_boot_ms(queue->clock);
	/* A bound of one firing each for what is set now, so that a run ends. */
	size_t left = queue->count;

	while (left-- > 0 && queue->count && queue->heap[0]->due_ms <= now_ms) {
		struct timer *const timer = queue->heap[0];
		timer_stop(queue, timer);
		timer->fire(timer);
	}
}
