/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/rate.h"

#define ONE INT64_C(1000)

static int64_t burst(const struct rate *rate)
{
	return 2 * ONE * rate->per_second;
}

void rate_init(struct rate *rate, unsigned per_second, int64_t now_ms)
{
	rate->per_second = per_second;
	rate->credit = burst(rate);
	rate->updated_ms = now_ms;
}

bool rate_take(struct rate *rate, int64_t now_ms)
{
	if (!rate->per_second)
		return true;
	const int64_t elapsed_ms = now_ms - rate->updated_ms;
	/* After two seconds it is full; more would only overflow. */
	rate->credit += (elapsed_ms < 2000 ? elapsed_ms : 2000) * rate->per_second;
	if (rate->credit > burst(rate))
		rate->credit = burst(rate);
	rate->updated_ms = now_ms;
	if (rate->credit < ONE)
		return false;
	rate->credit -= ONE;
	return true;
}

int64_t rate_wait_ms(const struct rate *rate)
{
	const int64_t missing = ONE - rate->credit;

	return missing <= 0 ? 1 : (missing + rate->per_second - 1) / rate->per_second;
}
