/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/query.h"

#include <string.h>
#include <strings.h>

static bool is_recursive(const char *field, size_t len)
{
	static const char key[] = "recursive=";
	static const char value[] = "true";
	const size_t key_len = sizeof(key) - 1;
	const size_t value_len = sizeof(value) - 1;

	return len == key_len + value_len && !memcmp(field, key, key_len) &&
	       !strncasecmp(field + key_len, value, value_len);
}

static bool is_json(const char *field, size_t len)
{
	static const char text[] = "alt=json";

	return len == sizeof(text) - 1 && !memcmp(field, text, len);
}

struct query query_parse(const char *text, size_t len)
{
	const char *const end = text + len;
	struct query query = {0};

	while (text < end) {
		const char *const ampersand = memchr(text, '&', (size_t)(end - text));
		const char *const stop = ampersand ? ampersand : end;
		const size_t field_len = (size_t)(stop - text);
		query.recursive |= is_recursive(text, field_len);
		query.json |= is_json(text, field_len);
		text = ampersand ? ampersand + 1 : end;
	}
	return query;
}
