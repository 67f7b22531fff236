/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/google/access_token.h"

#include "broker/base/secret.h"

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
