/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/samples.h"

#include "broker/base/alloc.h"
#include "broker/base/compiler.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NS_PER_S INT64_C(1000000000)
#define NS_PER_US 1000.0

int64_t samples_now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

int64_t samples_add(struct samples *samples, int64_t begun_ns)
{
	const int64_t now_ns = samples_now_ns();

	if (samples->count == samples->room) {
		samples->room = samples->room ? 2 * samples->room : 4096;
		samples->all = xreallocarray(samples->all, samples->room, sizeof(samples->all[0]));
	}
	samples->all[samples->count++] = (struct sample){begun_ns, now_ns - begun_ns};
	return now_ns;
}

void samples_deinit(struct samples *samples)
{
	free(samples->all);
	*samples = (struct samples){0};
}

static int by_time_taken(const void *a, const void *b)
{
	const struct sample *const x = a;
	const struct sample *const y = b;

	return (x->took_ns > y->took_ns) - (x->took_ns < y->took_ns);
}

/* The smallest sample that `per_mille` of them do not exceed; they are sorted. */
static double percentile_us(const struct samples *samples, size_t per_mille)
{
	if (!samples->count)
		return 0;
	const size_t rank = (samples->count * per_mille + 999) / 1000;
	return (double)samples->all[rank ? rank - 1 : 0].took_ns / NS_PER_US;
}

void samples_print(struct samples *samples, const char *name)
{
	static const struct {
		const char *name;
		size_t per_mille;
	} figures[] = {{"p50", 500}, {"p90", 900}, {"p99", 990}, {"p999", 999}, {"max", 1000}};

	if (samples->count)
		qsort(samples->all, samples->count, sizeof(samples->all[0]), by_time_taken);
	for (size_t i = 0; i < ARRAY_LEN(figures); i++)
		printf("\"%s%s_us\":%.1f,", name, figures[i].name,
		       percentile_us(samples, figures[i].per_mille));
}

int samples_write(const struct samples *samples, const char *path)
{
	FILE *const file = fopen(path, "wbe");

	if (!file)
		return -1;
	const size_t written = fwrite(samples->all, sizeof(samples->all[0]), samples->count, file);
	if (fclose(file) || written != samples->count)
		return -1;
	return 0;
}
