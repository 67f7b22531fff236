/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/base/timer.h"

#include "tests/unit/fake_clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define TIMERS 64
#define STEPS 20000

static struct fake_clock fake;
static struct timer_queue queue;
static unsigned fired;
static int64_t last_due_ms;

static int set_up(void **state)
{
	(void)state;
	fake_clock_init(&fake);
	fake.boot_ms = 1000;
	timer_queue_init(&queue, &fake.clock);
	fired = 0;
	last_due_ms = 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	timer_queue_deinit(&queue);
	return 0;
}

static void count(struct timer *timer)
{
	(void)timer;
	fired++;
}

static void count_in_order(struct timer *timer)
{
	assert_false(timer_is_set(timer));
	assert_true(timer->due_ms >= last_due_ms);
	assert_true(timer->due_ms <= fake.boot_ms);
	last_due_ms = timer->due_ms;
	fired++;
}

/* A fixed sequence: the test is the same at each run. */
static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* The timer list as anybody would write it: due times in an array, -1 for stopped. */
struct model {
	int64_t due_ms[TIMERS];
};

static int64_t model_next(const struct model *model)
{
	int64_t next = -1;

	for (size_t i = 0; i < TIMERS; i++)
		if (model->due_ms[i] >= 0 && (next < 0 || model->due_ms[i] < next))
			next = model->due_ms[i];
	return next;
}

static unsigned model_run(struct model *model, int64_t now_ms)
{
	unsigned count_due = 0;

	for (size_t i = 0; i < TIMERS; i++)
		if (model->due_ms[i] >= 0 && model->due_ms[i] <= now_ms) {
			model->due_ms[i] = -1;
			count_due++;
		}
	return count_due;
}

static void the_queue_does_what_a_plain_list_would(void **state)
{
	static struct timer timers[TIMERS]; /* the queue is taken down after the test */
	struct model model;
	uint32_t seed = 8174;

	(void)state;
	for (size_t i = 0; i < TIMERS; i++)
		model.due_ms[i] = -1;
	for (size_t step = 0; step < STEPS; step++) {
		const size_t i = next_random(&seed) % TIMERS;
		switch (next_random(&seed) % 8) {
		case 0:
			fake_clock_advance_ms(&fake, next_random(&seed) % 40);
			fired = 0;
			last_due_ms = 0;
			timer_queue_run(&queue);
			assert_int_equal(fired, model_run(&model, fake.boot_ms));
			break;
		case 1:
		case 2:
			timer_stop(&queue, &timers[i]);
			model.due_ms[i] = -1;
			break;
		default:
			model.due_ms[i] = fake.boot_ms + next_random(&seed) % 100;
			timer_set(&queue, &timers[i], model.due_ms[i], count_in_order);
			break;
		}
		assert_true(timer_queue_next_ms(&queue) == model_next(&model));
		assert_int_equal(timer_is_set(&timers[i]), model.due_ms[i] >= 0);
	}
}

static void a_timer_fires_once_when_it_is_due_and_not_before(void **state)
{
	static struct timer timer; /* the queue is taken down after the test */

	(void)state;
	timer_set_after(&queue, &timer, 10, count);
	assert_true(timer_queue_next_ms(&queue) == 1010);
	fake_clock_advance_ms(&fake, 9);
	timer_queue_run(&queue);
	assert_int_equal(fired, 0);
	fake_clock_advance_ms(&fake, 1);
	timer_queue_run(&queue);
	timer_queue_run(&queue);
	assert_int_equal(fired, 1);
	assert_false(timer_is_set(&timer));
	assert_true(timer_queue_next_ms(&queue) == -1);
}

static void a_time_that_has_passed_fires_at_the_next_run(void **state)
{
	static struct timer timer; /* the queue is taken down after the test */

	(void)state;
	timer_set(&queue, &timer, 5, count);
	assert_int_equal(fired, 0);
	timer_queue_run(&queue);
	assert_int_equal(fired, 1);
}

static void set_again(struct timer *timer)
{
	fired++;
	timer_set(&queue, timer, fake.boot_ms, set_again);
}

static void a_callback_that_sets_itself_again_does_not_hold_the_run(void **state)
{
	static struct timer again; /* the queue is taken down after the test */
	static struct timer other; /* the queue is taken down after the test */

	(void)state;
	timer_set(&queue, &again, 1000, set_again);
	timer_set(&queue, &other, 2000, count);
	timer_queue_run(&queue);
	assert_in_range(fired, 1, 2);
	assert_true(timer_is_set(&again));
	assert_true(timer_is_set(&other));
	fake_clock_advance_ms(&fake, 1000);
	for (int i = 0; i < 3; i++)
		timer_queue_run(&queue);
	assert_false(timer_is_set(&other));
}

static struct timer *victim;

static void stop_victim(struct timer *timer)
{
	(void)timer;
	timer_stop(&queue, victim);
}

static void a_callback_may_stop_one_that_is_due_too(void **state)
{
	static struct timer first;  /* the queue is taken down after the test */
	static struct timer second; /* the queue is taken down after the test */

	(void)state;
	victim = &second;
	timer_set(&queue, &first, 1000, stop_victim);
	timer_set(&queue, &second, 1001, count);
	fake_clock_advance_ms(&fake, 10);
	timer_queue_run(&queue);
	assert_int_equal(fired, 0);
	assert_true(timer_queue_next_ms(&queue) == -1);
}

static void set_victim(struct timer *timer)
{
	(void)timer;
	timer_set(&queue, victim, fake.boot_ms + 5, count);
}

static void a_callback_may_move_one_that_is_due_too(void **state)
{
	static struct timer first;  /* the queue is taken down after the test */
	static struct timer second; /* the queue is taken down after the test */

	(void)state;
	victim = &second;
	timer_set(&queue, &first, 1000, set_victim);
	timer_set(&queue, &second, 1000, count);
	timer_set(&queue, &first, 999, set_victim);
	timer_queue_run(&queue);
	assert_int_equal(fired, 0);
	fake_clock_advance_ms(&fake, 5);
	timer_queue_run(&queue);
	assert_int_equal(fired, 1);
}

static void note_earlier(void *ctx, int64_t due_ms)
{
	*(int64_t *)ctx = due_ms;
}

static void the_hook_is_called_when_the_earliest_becomes_earlier(void **state)
{
	static struct timer a; /* the queue is taken down after the test */
	static struct timer b; /* the queue is taken down after the test */
	int64_t told_ms = -1;

	(void)state;
	queue.earlier = note_earlier;
	queue.earlier_ctx = &told_ms;
	timer_set(&queue, &a, 2000, count);
	assert_true(told_ms == 2000);
	told_ms = -1;
	timer_set(&queue, &b, 3000, count);
	assert_true(told_ms == -1);
	timer_set(&queue, &b, 1500, count);
	assert_true(told_ms == 1500);
	told_ms = -1;
	timer_set(&queue, &b, 1800, count);
	timer_stop(&queue, &b);
	assert_true(told_ms == -1);
	timer_set(&queue, &b, 1900, count);
	assert_true(told_ms == 1900);
	timer_stop(&queue, &a);
	timer_stop(&queue, &b);
	told_ms = -1;
	timer_set(&queue, &a, 9000, count);
	assert_true(told_ms == 9000);
}

static void a_stopped_timer_may_be_stopped_and_the_end_stops_all(void **state)
{
	static struct timer timer; /* the queue is taken down after the test */

	(void)state;
	timer_stop(&queue, &timer);
	timer_set_after(&queue, &timer, 1, count);
	timer_queue_deinit(&queue);
	assert_false(timer_is_set(&timer));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_queue_does_what_a_plain_list_would, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_timer_fires_once_when_it_is_due_and_not_before,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_time_that_has_passed_fires_at_the_next_run,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_callback_that_sets_itself_again_does_not_hold_the_run, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_callback_may_stop_one_that_is_due_too, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_callback_may_move_one_that_is_due_too, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			the_hook_is_called_when_the_earliest_becomes_earlier, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_stopped_timer_may_be_stopped_and_the_end_stops_all, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
