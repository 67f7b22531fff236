/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The closed route table. A line of it is a route; listings, recursive answers and the match all come
 * from the same line.
 */
#pragma once

#include "emulator/emulator.h"

#include <jansson.h>

/* Stands in a path for "default" or the account's email. */
#define ROUTE_ACCOUNT "{acct}"

struct route {
	/* A final slash makes it a directory. A directory stands before what it holds. */
	const char *path;
	size_t path_len;
	bool of_account; /* ROUTE_ACCOUNT stands in the path */
	enum emulator_route route;
	/* A leaf's value, the caller's; NULL: not in this identity's table. No function: not a value. */
	json_t *(*value)(const struct emulator_identity *identity);
};

size_t route_count(void);
const struct route *route_at(size_t index);
bool route_is_directory(const struct route *route);

/*
 * The name of `child` in the directory `parent`, with the final slash of a directory, or NULL where it
 * is not directly in it. Borrowed from the table.
 */
const char *route_name_in(const struct route *child, const struct route *parent);

/*
 * Finds the route of a path (the target up to its "?"), byte for byte. `accounts` holds every spelling
 * of the account that counts. False: no such route.
 */
bool route_find(const char *path, size_t len, const struct strv *accounts, size_t *index);
