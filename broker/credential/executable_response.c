/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/credential/executable_response.h"

#include "broker/base/compiler.h"
#include "broker/base/json.h"
#include "broker/base/secret.h"

#include <stdio.h>
#include <string.h>

static const char *token_field(const char *token_type)
{
	static const struct {
		const char *type;
		const char *field;
	} types[] = {
		{"urn:ietf:params:oauth:token-type:id_token", "id_token"},
		{"urn:ietf:params:oauth:token-type:jwt", "id_token"},
		{"urn:ietf:params:oauth:token-type:saml2", "saml_response"},
	};

	for (size_t i = 0; token_type && i < ARRAY_LEN(types); i++)
		if (!strcmp(types[i].type, token_type))
			return types[i].field;
	return NULL;
}

static enum executable_verdict read_success(const json_t *root, int64_t wall_s,
					    struct executable_response *out)
{
	const json_t *const expiry = json_object_get(root, "expiration_time");
	const char *const field = token_field(json_get_string(root, "token_type"));
	const char *const token = field ? json_get_string(root, field) : NULL;

	if (!token || !*token || (expiry && !json_is_integer(expiry)))
		return EXECUTABLE_BROKEN;
	out->has_expiry = expiry != NULL;
	if (expiry && json_integer_value(expiry) <= wall_s)
		return EXECUTABLE_EXPIRED;
	out->token = secret_new(token, strlen(token));
	return EXECUTABLE_GOOD;
}

void executable_response_read(const char *bytes, size_t len, int64_t wall_s,
			      struct executable_response *out)
{
	json_auto_t *root = json_read_object(bytes, len);
	const json_t *const success = json_object_get(root, "success");

	*out = (struct executable_response){.verdict = EXECUTABLE_BROKEN};
	if (json_integer_value(json_object_get(root, "version")) != 1 || !json_is_boolean(success))
		return;
	if (json_is_true(success)) {
		out->verdict = read_success(root, wall_s, out);
		return;
	}
	const char *const code = json_get_string(root, "code");
	if (!code || !json_get_string(root, "message"))
		return;
	out->verdict = EXECUTABLE_REFUSED;
	(void)snprintf(out->code, sizeof(out->code), "%s", code);
}
