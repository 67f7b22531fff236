/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The variables of a session, out of the broker's answer.
 */
#pragma once

#include <jansson.h>

struct variables;

/* Adds each member of "env" that is a string. */
void session_variables(const json_t *session, struct variables *out);
