/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/base/clock.h"

#include <time.h>

static int64_t read_ms(clockid_t id)
{
	struct timespec ts;

	(void)clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int64_t system_boot_ms(const struct clock *clock)
{
	(void)clock;
	return read_ms(CLOCK_BOOTTIME);
}

static int64_t system_wall_ms(const struct clock *clock)
{
	(void)clock;
	return read_ms(CLOCK_REALTIME);
}

const struct clock *clock_system(void)
{
	static const struct clock system = {.boot_ms = system_boot_ms, .wall_ms = system_wall_ms};

	return &system;
}
