/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/credential/gcloud_answer.h"

#include "broker/base/alloc.h"
#include "broker/base/json.h"
#include "broker/base/parse.h"
#include "broker/base/secret.h"
#include "broker/google/access_token.h"
#include "broker/google/rfc3339.h"

static char *read_account(const json_t *root)
{
	const json_t *const properties =
		json_object_get(json_object_get(root, "configuration"), "properties");
	const char *const account = json_get_string(json_object_get(properties, "core"), "account");

	return account && text_is_email(account) ? xstrdup(account) : NULL;
}

const char *gcloud_answer_read(const char *bytes, size_t len, struct gcloud_answer *out)
{
	int64_t expires_ms;

	json_auto_t *root = json_read_object(bytes, len);
	const json_t *const credential = json_object_get(root, "credential");
	const char *const expiry = json_get_string(credential, "token_expiry");
	AUTO_SECRET struct secret *token =
		access_token_from_json(json_object_get(credential, "access_token"));
	if (!token)
		return "gcloud printed no usable access token: " GCLOUD_BY_HAND;
	/* Never a guess: a token without an end would be served when it is none any more. */
	if (!expiry || rfc3339_parse_ms(expiry, &expires_ms))
		return "gcloud printed no expiry that can be read: " GCLOUD_BY_HAND;
	*out = (struct gcloud_answer){
		.token = TAKE(token),
		.expires_wall_ms = expires_ms,
		.account = read_account(root),
	};
	return NULL;
}
