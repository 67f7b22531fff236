/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model providers by name, and what a sandbox needs for each.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stddef.h>

struct buf;
struct err;

enum provider_kind {
	PROVIDER_KEY,	    /* an API key, which crosses by --env; no session */
	PROVIDER_SESSION,   /* a session of the broker, no key */
	PROVIDER_NO_RECIPE, /* keyless, but nothing brings its credential into a sandbox */
};

struct provider {
	const char *name;
	const char *const *aliases; /* NULL-ended */
	enum provider_kind kind;
	/* Of a session: the broker's backend. */
	const char *backend;
	/* The variable of a key that it takes all the same, and the run needs no session then; or NULL. */
	const char *key;
	/* PROVIDER_NO_RECIPE: the way out. */
	const char *repair;
};

/*
 * The provider of that name or alias, without regard to case. Borrowed, static. ERR_USAGE: unknown;
 * ERR_UNSUPPORTED: keyless without a recipe.
 */
NODISCARD int provider_find(const char *name, const struct provider **out, struct err *err);

/* The table: `count` entries. */
const struct provider *provider_table(size_t *count);

/* What help says of a kind. */
const char *provider_kind_text(enum provider_kind kind);
