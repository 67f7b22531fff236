/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/google/rfc3339.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

struct vector {
	const char *text;
	int64_t ms;
};

/* Seconds by date(1) of GNU coreutils: date -u -d TEXT +%s */
static const struct vector good[] = {
	{"1970-01-01T00:00:00Z", 0},
	{"2021-08-26T00:57:30Z", INT64_C(1629939450000)},
	{"2026-11-29T10:00:00Z", INT64_C(1795946400000)},
	{"2026-11-29T10:00:00z", INT64_C(1795946400000)},
	{"2026-11-29t10:00:00Z", INT64_C(1795946400000)},
	{"1969-12-31T23:59:59Z", -1000},
	/* Rounded down, also before 1970. */
	{"1969-12-31T23:59:59.9999Z", -1},
	{"1970-01-01T00:00:00.0009Z", 0},
	/* 1 to 9 fraction digits. */
	{"2026-11-29T10:00:00.1Z", INT64_C(1795946400100)},
	{"2026-11-29T10:00:00.12Z", INT64_C(1795946400120)},
	{"2026-11-29T10:00:00.123Z", INT64_C(1795946400123)},
	{"2026-11-29T10:00:00.1239Z", INT64_C(1795946400123)},
	{"2026-11-29T10:00:00.12345Z", INT64_C(1795946400123)},
	{"2026-11-29T10:00:00.123456Z", INT64_C(1795946400123)},
	{"2026-11-29T10:00:00.1234567Z", INT64_C(1795946400123)},
	{"2026-11-29T10:00:00.12345678Z", INT64_C(1795946400123)},
	{"2026-11-29T10:00:00.999999999Z", INT64_C(1795946400999)},
	{"2026-11-29T10:00:00.000000001Z", INT64_C(1795946400000)},
	{"2026-11-29T10:00:00.045045123Z", INT64_C(1795946400045)},
	/* Leap years, and the centuries that are none. */
	{"2024-02-29T00:00:00Z", INT64_C(1709164800000)},
	{"2000-02-29T12:00:00Z", INT64_C(951825600000)},
	{"2100-02-28T23:59:59Z", INT64_C(4107542399000)},
	{"2100-03-01T00:00:00Z", INT64_C(4107542400000)},
	{"2024-12-31T23:59:59Z", INT64_C(1735689599000)},
	{"2038-01-19T03:14:08Z", INT64_C(2147483648000)},
	{"9999-12-31T23:59:59Z", INT64_C(253402300799000)},
	{"0000-03-01T00:00:00Z", INT64_C(-62162035200000)},
	{"0001-01-01T00:00:00Z", INT64_C(-62135596800000)},
	/* RFC 3339 section 5.8, the leap second with its offset included. */
	{"1985-04-12T23:20:50.52Z", INT64_C(482196050520)},
	{"1996-12-19T16:39:57-08:00", INT64_C(851042397000)},
	{"1990-12-31T23:59:60Z", INT64_C(662688000000)},
	{"1990-12-31T15:59:60-08:00", INT64_C(662688000000)},
	{"1937-01-01T12:00:27.87+00:20", INT64_C(-1041337172130)},
};

static const char *const bad[] = {
	"",
	" ",
	"2026",
	"2026-11-29",
	"2026-11-29T",
	"2026-11-29T10",
	"2026-11-29T10:00",
	"2026-11-29T10:00:00",
	"2026-11-29T10:00Z",
	"2026-11-29 10:00:00Z",
	" 2026-11-29T10:00:00Z",
	"2026-11-29T10:00:00Z ",
	"2026-11-29T10:00:00ZZ",
	"2026-11-29T10:00:00Z\n",
	"2026-11-29T10:00:00.Z",
	"2026-11-29T10:00:00,5Z",
	"2026-11-29T10:00:00.1234567890Z",
	"2026-11-29T10:00:00. 5Z",
	"2026-11-29T10:00:00.-5Z",
	"2026-11-29T10:00:00.5",
	"2026-1-29T10:00:00Z",
	"26-11-29T10:00:00Z",
	"02026-11-29T10:00:00Z",
	"+2026-11-29T10:00:00Z",
	"-026-11-29T10:00:00Z",
	"2026-+1-29T10:00:00Z",
	"2026- 1-29T10:00:00Z",
	"2026-00-29T10:00:00Z",
	"2026-13-29T10:00:00Z",
	"2026-11-00T10:00:00Z",
	"2026-11-31T10:00:00Z",
	"2026-02-29T10:00:00Z",
	"2100-02-29T10:00:00Z",
	"2026-11-29T24:00:00Z",
	"2026-11-29T10:60:00Z",
	"2026-11-29T10:00:61Z",
	"2026-11-29T10:00:60Z",
	"2026-11-29T23:59:60+01:00",
	"2026-11-29T10:00:00+0100",
	"2026-11-29T10:00:00+01",
	"2026-11-29T10:00:00+1:00",
	"2026-11-29T10:00:00+24:00",
	"2026-11-29T10:00:00+01:60",
	"2026-11-29T10:00:00+01:00Z",
	"2026-11-29T10:00:00+ 1:00",
	"2026-11-29T10:00:00 +01:00",
	"2026-11-29T10:00:00UTC",
	"20261129T100000Z",
	"2026/11/29T10:00:00Z",
	"2026-11-29T10.00.00Z",
	"Sun, 29 Nov 2026 10:00:00 GMT",
	"1795946400",
	"1795946400Z",
	"null",
	/* A digit of two, but none of ASCII. */
	"\357\274\222026-11-29T10:00:00Z",
};

/* vacp2p/nim-libp2p#2975: a fraction was taken for milliseconds, and none for no end. */
static void timestamps_are_read_to_the_millisecond(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		int64_t ms = 0;
		if (rfc3339_parse_ms(good[i].text, &ms) || ms != good[i].ms)
			fail_msg("%s gave %" PRId64 ", not %" PRId64, good[i].text, ms, good[i].ms);
	}
}

static void anything_else_is_refused_and_leaves_the_result_alone(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int64_t ms = 4711;
		if (!rfc3339_parse_ms(bad[i], &ms) || ms != 4711)
			fail_msg("\"%s\" was read as %" PRId64, bad[i], ms);
	}
}

/* Every offset of a quarter of an hour, and the ends. */
static void every_offset_moves_the_time_the_other_way(void **state)
{
	char text[64];

	(void)state;
	for (int minutes = -(23 * 60 + 59); minutes <= 23 * 60 + 59; minutes++) {
		const int size = minutes < 0 ? -minutes : minutes;
		int64_t ms = 0;
		(void)snprintf(text, sizeof(text), "2026-11-29T10:00:00%c%02d:%02d",
			       minutes < 0 ? '-' : '+', size / 60, size % 60);
		assert_int_equal(rfc3339_parse_ms(text, &ms), 0);
		assert_int_equal(ms, INT64_C(1795946400000) - (int64_t)minutes * 60000);
	}
	int64_t ms = 0;
	assert_int_equal(rfc3339_parse_ms("2026-11-29T10:00:00-00:00", &ms), 0);
	assert_int_equal(ms, INT64_C(1795946400000));
}

static void a_second_is_written_as_utc(void **state)
{
	static const struct vector vectors[] = {
		{"1970-01-01T00:00:00Z", 0},
		{"1970-01-01T00:00:00Z", 999},
		{"2026-11-29T10:00:00Z", INT64_C(1795946400999)},
		{"2024-02-29T23:59:59Z", INT64_C(1709251199000)},
		{"2100-03-01T00:00:00Z", INT64_C(4107542400000)},
		{"9999-12-31T23:59:59Z", INT64_C(253402300799999)},
	};
	char text[RFC3339_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		rfc3339_format(text, vectors[i].ms);
		assert_string_equal(text, vectors[i].text);
	}
}

static void every_day_of_two_centuries_is_written_as_it_is_read(void **state)
{
	char text[RFC3339_SIZE];

	(void)state;
	for (int64_t day = 0; day < 200 * 366; day++) {
		const int64_t ms = day * 86400000 + 45296000;
		int64_t again = -1;
		rfc3339_format(text, ms);
		assert_int_equal(rfc3339_parse_ms(text, &again), 0);
		assert_int_equal(again, ms);
	}
}

static void years_out_of_range_are_written_as_the_nearest_that_fits(void **state)
{
	char text[RFC3339_SIZE];

	(void)state;
	rfc3339_format(text, -1);
	assert_string_equal(text, "1970-01-01T00:00:00Z");
	rfc3339_format(text, INT64_MAX);
	assert_string_equal(text, "9999-12-31T23:59:59Z");
}

static void run_in_zone(void **state, const char *zone)
{
	assert_int_equal(setenv("TZ", zone, 1), 0);
	tzset();
	timestamps_are_read_to_the_millisecond(state);
	every_offset_moves_the_time_the_other_way(state);
	a_second_is_written_as_utc(state);
	assert_int_equal(unsetenv("TZ"), 0);
	tzset();
}

static void the_time_zone_of_los_angeles_changes_nothing(void **state)
{
	run_in_zone(state, "America/Los_Angeles");
}

static void the_time_zone_of_calcutta_changes_nothing(void **state)
{
	run_in_zone(state, "Asia/Kolkata");
}

/* In POSIX form, which needs no zone files: here the zone is sure to be in force. */
static void a_time_zone_that_is_in_force_changes_nothing(void **state)
{
	assert_int_equal(setenv("TZ", "IST-5:30", 1), 0);
	tzset();
	assert_int_equal(timezone, -19800);
	run_in_zone(state, "IST-5:30");
	run_in_zone(state, "PST8PDT,M3.2.0,M11.1.0");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(timestamps_are_read_to_the_millisecond),
		cmocka_unit_test(anything_else_is_refused_and_leaves_the_result_alone),
		cmocka_unit_test(every_offset_moves_the_time_the_other_way),
		cmocka_unit_test(a_second_is_written_as_utc),
		cmocka_unit_test(every_day_of_two_centuries_is_written_as_it_is_read),
		cmocka_unit_test(years_out_of_range_are_written_as_the_nearest_that_fits),
		cmocka_unit_test(the_time_zone_of_los_angeles_changes_nothing),
		cmocka_unit_test(the_time_zone_of_calcutta_changes_nothing),
		cmocka_unit_test(a_time_zone_that_is_in_force_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
