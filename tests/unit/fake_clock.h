/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A clock that stands still until a test moves it: `struct fake_clock fake; fake_clock_init(&fake);`
 * and `&fake.clock` is what the code under test gets.
 */
#pragma once

#include "broker/base/clock.h"
#include "broker/base/compiler.h"

#include <stdint.h>

/* 2026-11-29T10:00:00Z */
#define FAKE_WALL_S INT64_C(1795946400)

struct fake_clock {
	struct clock clock;
	int64_t boot_ms;
	int64_t wall_ms;
};

static inline int64_t fake_clock_boot_ms(const struct clock *clock)
{
	return ((const struct fake_clock *)(const void *)clock)->boot_ms;
}

static inline int64_t fake_clock_wall_ms(const struct clock *clock)
{
	return ((const struct fake_clock *)(const void *)clock)->wall_ms;
}

static inline void fake_clock_init(struct fake_clock *fake)
{
	_Static_assert(offsetof(struct fake_clock, clock) == 0, "the casts above need it first");
	*fake = (struct fake_clock){
		.clock = {.boot_ms = fake_clock_boot_ms, .wall_ms = fake_clock_wall_ms},
		.boot_ms = 1000000,
		.wall_ms = FAKE_WALL_S * 1000,
	};
}

/* Time passes: both clocks move. A step of one alone is an assignment to its field. */
static inline void fake_clock_advance_ms(struct fake_clock *fake, int64_t ms)
{
	fake->boot_ms += ms;
	fake->wall_ms += ms;
}
