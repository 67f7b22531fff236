/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long things took, and what is said of them.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sample {
	int64_t begun_ns; /* CLOCK_MONOTONIC */
	int64_t took_ns;
};

struct samples {
	struct sample *all; /* owned */
	size_t count;
	size_t room;
};

/* Nanoseconds of CLOCK_MONOTONIC. */
int64_t samples_now_ns(void);

/* Adds what began at `begun_ns` and ends now; gives the now. */
int64_t samples_add(struct samples *samples, int64_t begun_ns);

void samples_deinit(struct samples *samples);

/*
 * Prints the members "NAME_p50_us", ..., "NAME_max_us" of a JSON object, each with a comma behind.
 * Sorts the samples.
 */
void samples_print(struct samples *samples, const char *name);

/* Writes the samples as they stand, two int64_t each. -1 with errno where that fails. */
int samples_write(const struct samples *samples, const char *path);
