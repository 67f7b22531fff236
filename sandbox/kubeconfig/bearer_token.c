/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/kubeconfig/bearer_token.h"

#include "broker/base/buf.h"
#include "broker/base/json.h"
#include "broker/base/secret.h"
#include "sandbox/kubeconfig/base64.h"
#include "sandbox/kubeconfig/plain_file.h"

#include <string.h>

#define BLANKS " \t\r\n\v\f"

/* The last second of the year 9999. */
#define LAST_WALL_S 253402300799.0

bool bearer_token_is_one(const char *text)
{
	if (!*text || strlen(text) > BEARER_TOKEN_MAX_BYTES)
		return false;
	for (; *text; text++)
		if (*text <= ' ' || *text > '~')
			return false;
	return true;
}

int bearer_token_read(const char *path, struct secret **out, const char **why)
{
	AUTO_BUF struct buf text;

	buf_init_sensitive(&text, BEARER_TOKEN_MAX_BYTES);
	*why = plain_file_read(path, false, &text);
	if (*why)
		return -1;
	const size_t start = text.len ? strspn(text.data, BLANKS) : 0;
	size_t end = text.len;
	while (end > start && strchr(BLANKS, text.data[end - 1]) && text.data[end - 1])
		end--;
	AUTO_SECRET struct secret *token =
		secret_new(text.data ? text.data + start : "", end - start);
	if (strlen(secret_bytes(token)) != end - start ||
	    !bearer_token_is_one(secret_bytes(token))) {
		*why = "holds something else than one token";
		return -1;
	}
	*out = TAKE(token);
	return 0;
}

bool bearer_token_expiry(const char *token, int64_t *expires_wall_s)
{
	AUTO_BUF struct buf claims;

	const char *const first = strchr(token, '.');
	const char *const second = first ? strchr(first + 1, '.') : NULL;
	if (!second || strchr(second + 1, '.'))
		return false;
	buf_init_sensitive(&claims, BEARER_TOKEN_MAX_BYTES);
	if (base64_decode_url(&claims, first + 1, (size_t)(second - first - 1)))
		return false;
	json_auto_t *object = json_read_object(claims.data, claims.len);
	const json_t *const exp = json_object_get(object, "exp");
	const double value = json_number_value(exp);
	if (!json_is_number(exp) || !(value >= 0 && value <= LAST_WALL_S))
		return false;
	*expires_wall_s = (int64_t)value;
	return true;
}
