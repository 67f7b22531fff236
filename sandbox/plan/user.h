/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whom the command runs as inside the sandbox.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stdint.h>

struct err;
struct run_options;
struct caller;

/* Engines refuse more. */
#define USER_ID_MAX 2147483647U
/* Whom the engine is told where root would be the only other choice. */
#define USER_FALLBACK "1000:1000"

struct user_ids {
	uint32_t uid;
	uint32_t gid; /* the uid where none was given */
};

/* "U" or "U:G", numbers up to USER_ID_MAX. ERR_USAGE otherwise. */
NODISCARD int user_ids_parse(const char *text, struct user_ids *out, struct err *err);

/*
 * The value of the engine's --user, the caller's to free: as the option says, else the caller's ids, else
 * (caller root) the image's own user, else 1000:1000. Never a number or name that is root's unless it was asked
 * for; whose a name is otherwise, the image says. ERR_INVALID: the caller's ids are too big for engines.
 */
NODISCARD int user_choose(const struct run_options *options, const struct caller *caller,
			  const char *image_user, char **out, struct err *err);
