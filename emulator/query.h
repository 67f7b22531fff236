/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two keys of a query that count. Everything else a client may say is ignored: above all "scopes",
 * by which no token can be widened.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct query {
	bool recursive; /* recursive=true, the value in any case */
	bool json;	/* alt=json */
};

/*
 * Reads what follows the "?". Keys and values are compared as they stand, never decoded; "&" alone
 * separates. Both keys only choose the form of an answer, never what may be seen, so that duplicates
 * need no rule: one that says yes is enough.
 */
struct query query_parse(const char *text, size_t len);
