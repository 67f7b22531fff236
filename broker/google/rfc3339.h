/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timestamps of Google's APIs (RFC 3339), whatever the time zone of the host.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stdint.h>

/* "2026-11-29T10:00:00Z" and the NUL. */
#define RFC3339_SIZE 21

/*
 * Reads a whole timestamp with 0 to 9 fraction digits and any offset into milliseconds since 1970 UTC,
 * rounded down. -1 on anything else: unlike strptime() it knows no blank, no sign and no missing part.
 */
NODISCARD int rfc3339_parse_ms(const char *text, int64_t *out_ms);

/* Writes the second of `ms` as UTC. Years 1970 to 9999. */
void rfc3339_format(char out[static RFC3339_SIZE], int64_t ms);
