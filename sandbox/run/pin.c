/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/run/pin.h"

#include "broker/base/alloc.h"
#include "broker/base/clock.h"
#include "broker/base/timer.h"
#include "broker/net/child.h"
#include "broker/net/loop.h"
#include "sandbox/run/cidfile.h"
#include "sandbox/run/container.h"
#include "sandbox/run/engine.h"

/* Between two looks: at the file, which costs nothing, and at the container. */
#define LOOK_EVERY_MS 20

struct pin {
	struct loop *loop;
	const struct engine *engine;
	const char *cidfile;
	struct timer look;
	struct child *inspect;
	int64_t running_ms; /* when it was first seen running; 0: not yet */
	enum pin_state state;
	json_t *addresses;
};

static void on_look(struct timer *timer);

static void look_again(struct pin *pin)
{
	timer_set_after(loop_timers(pin->loop), &pin->look, LOOK_EVERY_MS, on_look);
}

static void on_inspected(void *ctx, const struct child_result *result)
{
	struct pin *const pin = ctx;
	const int64_t now_ms = clock_boot_ms(loop_timers(pin->loop)->clock);
	AUTO_CONTAINER struct container container = {0};

	pin->inspect = NULL;
	if (result->end == CHILD_EXITED && !result->status)
		(void)!container_read(&container, result->output, result->output_len);
	if (container.running && json_array_size(container.addresses)) {
		pin->addresses = json_incref(container.addresses);
		pin->state = PIN_FOUND;
		return;
	}
	if (container.running && !pin->running_ms)
		pin->running_ms = now_ms;
	if (pin->running_ms && now_ms - pin->running_ms >= PIN_TIMEOUT_MS)
		pin->state = PIN_LATE;
	else
		look_again(pin);
}

static void on_look(struct timer *timer)
{
	struct pin *const pin = CONTAINER_OF(timer, struct pin, look);
	char id[CIDFILE_ID_SIZE];

	if (cidfile_read(pin->cidfile, id)) {
		look_again(pin);
		return;
	}
	const char *const args[] = {"container", "inspect", id, NULL};
	pin->inspect = engine_start(pin->engine, args, on_inspected, pin);
}

struct pin *pin_new(struct loop *loop, const struct engine *engine, const char *cidfile)
{
	struct pin *const pin = xcalloc(1, sizeof(*pin));

	pin->loop = loop;
	pin->engine = engine;
	pin->cidfile = cidfile;
	look_again(pin);
	return pin;
}

void pin_free(struct pin *pin)
{
	if (!pin)
		return;
	timer_stop(loop_timers(pin->loop), &pin->look);
	child_cancel(pin->inspect);
	json_decref(pin->addresses);
	free(pin);
}

enum pin_state pin_state(const struct pin *pin)
{
	return pin->state;
}

json_t *pin_addresses(const struct pin *pin)
{
	return pin->addresses;
}
