/* SPDX-License-Identifier: Apache-2.0 */
/* What a program for subject tokens answers (AIP-4117): on its standard output, or in its file. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct secret;

enum executable_verdict {
	EXECUTABLE_GOOD,
	EXECUTABLE_EXPIRED,
	EXECUTABLE_REFUSED, /* success is false */
	EXECUTABLE_BROKEN,  /* it is no such answer */
};

struct executable_response {
	enum executable_verdict verdict;
	bool has_expiry;      /* with EXECUTABLE_GOOD */
	struct secret *token; /* with EXECUTABLE_GOOD, else NULL; the caller's reference */
	char code[32];	      /* with EXECUTABLE_REFUSED, else ""; of the program's choice */
};

/* Any bytes; wall_s is the time by which an expiration counts. */
void executable_response_read(const char *bytes, size_t len, int64_t wall_s,
			      struct executable_response *out);
