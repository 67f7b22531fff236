/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/client/session_variables.h"

#include "sandbox/plan/variables.h"

void session_variables(const json_t *session, struct variables *out)
{
	const json_t *value = NULL;
	const char *name = NULL;

	json_object_foreach(json_object_get(session, "env"), name, value)
		if (json_is_string(value))
			variables_set(out, name, VARIABLE_SESSION, json_string_value(value));
}
