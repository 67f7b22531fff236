/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bodies of every route for one identity, made once, so that answering is a look-up.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stdbool.h>
#include <stddef.h>

struct emulator_identity;

struct body {
	char *data;
	size_t len;
};

struct content {
	bool served;	  /* false: this identity's table lacks the route */
	struct body text; /* a listing, or the value as text */
	struct body json; /* a directory's recursive answer, or the value as JSON */
};

/* One content for each route, in the order of the route table. A token's has no bodies. */
NODISCARD struct content *contents_new(const struct emulator_identity *identity);
/* NULL is fine. */
void contents_free(struct content *contents);
