/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time. Everything that waits or expires reads it here, so that a test can be its own clock.
 */
#pragma once

#include <stdint.h>

struct clock {
	/* Milliseconds since boot, suspend included (CLOCK_BOOTTIME). Never goes back. */
	int64_t (*boot_ms)(const struct clock *clock);
	/* Milliseconds since 1970 UTC (CLOCK_REALTIME). May step either way. */
	int64_t (*wall_ms)(const struct clock *clock);
};

/* The machine's clocks. */
const struct clock *clock_system(void);

static inline int64_t clock_boot_ms(const struct clock *clock)
{
	return clock->boot_ms(clock);
}

static inline int64_t clock_wall_ms(const struct clock *clock)
{
	return clock->wall_ms(clock);
}
