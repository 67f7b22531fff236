/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP dates (RFC 9110 section 5.6.7), free of time zone and locale.
 */
#pragma once

#include <stdint.h>

/* "Sun, 06 Nov 1994 08:49:37 GMT" and the NUL. */
#define HTTP_DATE_SIZE 30

/* Writes the second of wall_ms; years 1970 to 9999. */
void http_date_format(char out[static HTTP_DATE_SIZE], int64_t wall_ms);
