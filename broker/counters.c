/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/counters.h"

#include <string.h>

static void count(struct labelled_counter *table, const char *label, unsigned code)
{
	for (size_t i = 0; i < COUNTERS_MAX_LABELS; i++) {
		struct labelled_counter *const c = &table[i];
		if (!c->label)
			*c = (struct labelled_counter){.label = label, .code = code};
		if (c->code == code && (c->label == label || !strcmp(c->label, label))) {
			c->count++;
			return;
		}
	}
}

void counters_request(struct counters *counters, const char *route, unsigned code)
{
	counters->requests_total++;
	count(counters->requests, route, code);
}

void counters_refused(struct counters *counters, const char *reason)
{
	counters->refused_total++;
	count(counters->refused, reason, 0);
}
