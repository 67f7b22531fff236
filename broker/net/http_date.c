/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/net/http_date.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

void http_date_format(char out[static HTTP_DATE_SIZE], int64_t wall_ms)
{
	static const char days[] = "SunMonTueWedThuFriSat";
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	const time_t wall_s = (time_t)(wall_ms / 1000);
	char text[64];
	struct tm tm;

	if (!gmtime_r(&wall_s, &tm))
		tm = (struct tm){.tm_mday = 1, .tm_year = 70, .tm_wday = 4};
	(void)snprintf(text, sizeof(text), "%.3s, %02d %.3s %04d %02d:%02d:%02d GMT",
		       days + (ptrdiff_t)3 * tm.tm_wday, tm.tm_mday,
		       months + (ptrdiff_t)3 * tm.tm_mon, tm.tm_year + 1900, tm.tm_hour, tm.tm_min,
		       tm.tm_sec);
	memcpy(out, text, HTTP_DATE_SIZE - 1);
	out[HTTP_DATE_SIZE - 1] = '\0';
}
