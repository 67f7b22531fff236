/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an access token of an answer has to look like before anybody is handed it: it goes into
 * headers and JSON without being escaped.
 */
#pragma once

#include "broker/base/compiler.h"

#include <jansson.h>
#include <stdint.h>

struct secret;

/* Google documents no length; those seen have some hundred bytes. */
#define ACCESS_TOKEN_MAX_BYTES 16384

/*
 * The token, the caller's reference. NULL unless the value is a string of 1 to ACCESS_TOKEN_MAX_BYTES
 * printable ASCII characters without blanks, quotes and backslashes.
 */
NODISCARD struct secret *access_token_from_json(const json_t *value);

/*
 * An expires_in in seconds, at most a day; some servers send the number as a string. 0 where it is no
 * positive number of seconds: then it is no life.
 */
int64_t access_token_life_s(const json_t *expires_in);
