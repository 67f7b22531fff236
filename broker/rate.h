/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A token bucket: so many a second, twice that at once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct rate {
	unsigned per_second; /* 0: no limit */
	int64_t credit;	     /* thousandths of one */
	int64_t updated_ms;
};

void rate_init(struct rate *rate, unsigned per_second, int64_t now_ms);
/* True where one more may go now; takes it. */
bool rate_take(struct rate *rate, int64_t now_ms);
/* How long until one may go, at least 1. */
int64_t rate_wait_ms(const struct rate *rate);
