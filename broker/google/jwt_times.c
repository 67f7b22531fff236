/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/google/jwt_times.h"

#include "broker/base/alloc.h"
#include "broker/base/base64url.h"
#include "broker/base/json.h"

#include <string.h>

/* Of the payload, in base64url. */
#define MAX_PAYLOAD_BYTES 65536
/* The year 9999: what is later is no time. */
#define MAX_TIME_S 253402300799

/* Some issuers give fractions. */
static int64_t time_of(const json_t *value)
{
	const double seconds = json_number_value(value);

	return seconds > 0 && seconds <= MAX_TIME_S ? (int64_t)seconds : 0;
}

struct jwt_times jwt_read_times(const char *token)
{
	const char *const first = strchr(token, '.');
	const char *const second = first ? strchr(first + 1, '.') : NULL;
	const size_t len = second ? (size_t)(second - first - 1) : 0;

	if (!len || len > MAX_PAYLOAD_BYTES)
		return (struct jwt_times){0};
	AUTO_FREE char *payload = xmalloc(len);
	const ssize_t decoded = base64url_decode(payload, first + 1, len);
	json_auto_t *claims = decoded > 0 ? json_read_object(payload, (size_t)decoded) : NULL;
	const struct jwt_times times = {
		.issued_s = time_of(json_object_get(claims, "iat")),
		.expires_s = time_of(json_object_get(claims, "exp")),
	};
	/* Claims are not a secret, but nobody's business either. */
	explicit_bzero(payload, len);
	return times;
}
