/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of the broker's profiles a session is of.
 */
#pragma once

#include "broker/base/compiler.h"

#include <jansson.h>

struct err;
struct provider;

/* Borrowed from the broker's status. */
struct profile_choice {
	const char *name;
	const char *project;
	const char *location;
};

/*
 * The one that is named; without a name the only one, else the one called "default". With a provider only
 * those of its backend count. Returns the exit status: 0, 3 where there is none such, 2 where one has to
 * be named.
 */
NODISCARD int profile_choose(const json_t *status, const char *name,
			     const struct provider *provider, struct profile_choice *out,
			     struct err *err);
