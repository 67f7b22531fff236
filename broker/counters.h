/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is counted of a profile, for status and metrics. Labels come from closed sets: constant strings,
 * compared by value.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Routes × status codes, and reasons of refusal, that can occur. */
#define COUNTERS_MAX_LABELS 96

struct labelled_counter {
	const char *label;
	unsigned code; /* 0 where only the label counts */
	uint64_t count;
};

struct counters {
	struct labelled_counter requests[COUNTERS_MAX_LABELS];
	struct labelled_counter refused[COUNTERS_MAX_LABELS];
	uint64_t requests_total;
	uint64_t refused_total;
	uint64_t tokens;
	uint64_t mints;
	uint64_t mint_failures;
};

void counters_request(struct counters *counters, const char *route, unsigned code);
void counters_refused(struct counters *counters, const char *reason);
