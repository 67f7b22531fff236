/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/google/access_token.h"

#include "broker/base/parse.h"
#include "broker/base/secret.h"

/* Google's tokens live an hour; whatever an answer says, none is kept longer than a day. */
#define MAX_LIFE_S 86400

struct secret *access_token_from_json(const json_t *value)
{
	const char *const text = json_string_value(value);
	const size_t len = json_string_length(value);

	if (!text || !len || len > ACCESS_TOKEN_MAX_BYTES)
		return NULL;
	for (size_t i = 0; i < len; i++)
		if (text[i] <= ' ' || text[i] > '~' || text[i] == '"' || text[i] == '\\')
			return NULL;
	return secret_new(text, len);
}

int64_t access_token_life_s(const json_t *expires_in)
{
	uint64_t seconds;

	if (json_is_integer(expires_in) && json_integer_value(expires_in) > 0)
		seconds = (uint64_t)json_integer_value(expires_in);
	else if (!json_is_string(expires_in) ||
		 parse_uint(json_string_value(expires_in), 0, UINT64_MAX, &seconds))
		return 0;
	return seconds < MAX_LIFE_S ? (int64_t)seconds : MAX_LIFE_S;
}
