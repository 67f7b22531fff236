/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/google/rfc3339.h"

#include <stdbool.h>
#include <string.h>

#define DAY_S 86400

struct civil {
	int year;
	int month;
	int day;
};

/* Reads `count` digits and moves on; -1 where one of them is none. */
static int read_digits(const char **text, int count)
{
	int value = 0;

	for (int i = 0; i < count; i++) {
		const char c = (*text)[i];
		if (c < '0' || c > '9')
			return -1;
		value = value * 10 + (c - '0');
	}
	*text += count;
	return value;
}

/* Moves over one of the characters of `set`. */
static bool skip(const char **text, const char *set)
{
	if (!**text || !strchr(set, **text))
		return false;
	++*text;
	return true;
}

static int days_of_month(int year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return days[month - 1] + (month == 2 && leap ? 1 : 0);
}

/*
 * Days since 1970-01-01 in the proleptic Gregorian calendar, counted in years that begin in March, so
 * that the leap day is the last one (H. Hinnant, "chrono-compatible low-level date algorithms").
 * Neither this nor its reverse looks at the host's time zone, as mktime() would.
 */
static int64_t days_from_civil(const struct civil *date)
{
	const int64_t year = date->year - (date->month <= 2 ? 1 : 0);
	const int64_t era = (year >= 0 ? year : year - 399) / 400;
	const int64_t year_of_era = year - era * 400;
	const int64_t month = (date->month + 9) % 12;
	const int64_t day_of_year = (153 * month + 2) / 5 + date->day - 1;
	const int64_t day_of_era =
		year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;

	return era * 146097 + day_of_era - 719468;
}

/* The reverse, for days from 1970 on. */
static struct civil civil_from_days(int64_t days)
{
	const int64_t shifted = days + 719468;
	const int64_t era = shifted / 146097;
	const int64_t day_of_era = shifted % 146097;
	const int64_t year_of_era =
		(day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
	const int64_t day_of_year =
		day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	const int64_t month = (5 * day_of_year + 2) / 153;
	const bool next_year = month >= 10;

	return (struct civil){
		.year = (int)(year_of_era + era * 400 + (next_year ? 1 : 0)),
		.month = (int)(next_year ? month - 9 : month + 3),
		.day = (int)(day_of_year - (153 * month + 2) / 5 + 1),
	};
}

static int read_date(const char **text, struct civil *date)
{
	date->year = read_digits(text, 4);
	if (date->year < 0 || !skip(text, "-"))
		return -1;
	date->month = read_digits(text, 2);
	if (date->month < 1 || date->month > 12 || !skip(text, "-"))
		return -1;
	date->day = read_digits(text, 2);
	if (date->day < 1 || date->day > days_of_month(date->year, date->month))
		return -1;
	return 0;
}

struct time_of_day {
	int seconds;
	bool leap; /* a second numbered 60 */
};

static int read_time(const char **text, struct time_of_day *time)
{
	const int hour = read_digits(text, 2);
	if (hour < 0 || hour > 23 || !skip(text, ":"))
		return -1;
	const int minute = read_digits(text, 2);
	if (minute < 0 || minute > 59 || !skip(text, ":"))
		return -1;
	const int second = read_digits(text, 2);
	if (second < 0 || second > 60)
		return -1;
	time->seconds = hour * 3600 + minute * 60 + second;
	time->leap = second == 60;
	return 0;
}

/* An optional fraction of 1 to 9 digits, cut to milliseconds. */
static int read_fraction(const char **text, int *out_ms)
{
	int scale = 100;
	int count = 0;

	*out_ms = 0;
	if (!skip(text, "."))
		return 0;
	for (; **text >= '0' && **text <= '9'; ++*text, count++) {
		*out_ms += (**text - '0') * scale;
		scale /= 10;
	}
	return count >= 1 && count <= 9 ? 0 : -1;
}

static int read_offset(const char **text, int *out_s)
{
	if (skip(text, "Zz")) {
		*out_s = 0;
		return 0;
	}
	const bool west = **text == '-';
	if (!skip(text, "+-"))
		return -1;
	const int hour = read_digits(text, 2);
	if (hour < 0 || hour > 23 || !skip(text, ":"))
		return -1;
	const int minute = read_digits(text, 2);
	if (minute < 0 || minute > 59)
		return -1;
	*out_s = (hour * 3600 + minute * 60) * (west ? -1 : 1);
	return 0;
}

int rfc3339_parse_ms(const char *text, int64_t *out_ms)
{
	struct civil date;
	struct time_of_day time;
	int fraction_ms;
	int offset_s;

	if (read_date(&text, &date) || !skip(&text, "Tt") || read_time(&text, &time) ||
	    read_fraction(&text, &fraction_ms) || read_offset(&text, &offset_s) || *text)
		return -1;
	const int64_t utc_s = days_from_civil(&date) * DAY_S + time.seconds - offset_s;
	/* A leap second is the last one before midnight UTC (RFC 3339 section 5.7). */
	if (time.leap && utc_s % DAY_S != 0)
		return -1;
	*out_ms = utc_s * 1000 + fraction_ms;
	return 0;
}

static void write_digits(char *out, int count, int value)
{
	for (int i = count - 1; i >= 0; i--) {
		out[i] = (char)('0' + value % 10);
		value /= 10;
	}
}

void rfc3339_format(char out[static RFC3339_SIZE], int64_t ms)
{
	/* 9999-12-31T23:59:59Z */
	static const int64_t last_s = 253402300799;
	const int64_t rounded_s = ms < 0 ? 0 : ms / 1000;
	const int64_t utc_s = rounded_s > last_s ? last_s : rounded_s;
	const struct civil date = civil_from_days(utc_s / DAY_S);
	const int time_s = (int)(utc_s % DAY_S);

	memcpy(out, "0000-00-00T00:00:00Z", RFC3339_SIZE);
	write_digits(out, 4, date.year);
	write_digits(out + 5, 2, date.month);
	write_digits(out + 8, 2, date.day);
	write_digits(out + 11, 2, time_s / 3600);
	write_digits(out + 14, 2, time_s / 60 % 60);
	write_digits(out + 17, 2, time_s % 60);
}
