/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/base/parse.h"

#include <string.h>

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_alnum(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Reads the digits at the start of text; NULL where there are none or they do not fit. */
static const char *read_digits(const char *text, uint64_t *out)
{
	uint64_t value = 0;

	if (!is_digit(*text))
		return NULL;
	for (; is_digit(*text); text++) {
		if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
			return NULL;
	}
	*out = value;
	return text;
}

int parse_uint(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	uint64_t value;

	const char *const end = read_digits(text, &value);
	if (!end || *end || value < min || value > max)
		return -1;
	*out = value;
	return 0;
}

int parse_duration_s(const char *text, int64_t min_s, int64_t max_s, int64_t *out_s)
{
	uint64_t value;
	int64_t unit_s;

	const char *const end = read_digits(text, &value);
	if (!end || value > INT32_MAX)
		return -1;
	if (!strcmp(end, "s"))
		unit_s = 1;
	else if (!strcmp(end, "m"))
		unit_s = 60;
	else if (!strcmp(end, "h"))
		unit_s = 3600;
	else
		return -1;
	const int64_t seconds = (int64_t)value * unit_s;
	if (seconds < min_s || seconds > max_s)
		return -1;
	*out_s = seconds;
	return 0;
}

int parse_bool(const char *text, bool *out)
{
	if (strcmp(text, "yes") != 0 && strcmp(text, "no") != 0)
		return -1;
	*out = text[0] == 'y';
	return 0;
}

bool text_is_of(const char *text, const char *others)
{
	if (!*text)
		return false;
	for (; *text; text++)
		if (!is_alnum(*text) && !strchr(others, *text))
			return false;
	return true;
}

bool text_is_host_name(const char *text)
{
	size_t label = 0; /* bytes of the label so far */

	if (strlen(text) > 253)
		return false;
	for (; *text; text++) {
		if (*text == '.') {
			if (!label || text[-1] == '-')
				return false;
			label = 0;
		} else if (is_alnum(*text) || (*text == '-' && label)) {
			if (++label > 63)
				return false;
		} else {
			return false;
		}
	}
	return label && text[-1] != '-';
}

bool text_is_email(const char *text)
{
	const char *const at = strchr(text, '@');

	if (!at || at == text || strlen(text) > 254)
		return false;
	return text_is_of(text, "@.-_+") && text_is_host_name(at + 1) && strchr(at + 1, '.');
}
