/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What jansson leaves to its user: memory that is cleared when it is freed, and objects read strictly.
 */
#pragma once

#include "broker/base/compiler.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * From here on jansson clears whatever it frees, and out of memory ends the process: parsed key files
 * and answers hold refresh tokens, keys and access tokens, and jansson would leave their copies behind.
 * Called once, by main, before the first use of jansson.
 */
void json_clear_on_free(void);

/*
 * The one JSON object that the bytes are, without a duplicate key; NULL otherwise. The caller's
 * reference.
 */
NODISCARD json_t *json_read_object(const char *bytes, size_t len);

/* Whether a text can be a string of JSON: it is UTF-8. */
bool json_takes(const char *text);

/* The string at `key` of an object; NULL where there is none, or something else. Borrowed. */
const char *json_get_string(const json_t *object, const char *key);
