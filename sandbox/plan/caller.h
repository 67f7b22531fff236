/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who started the launcher and from where: everything of the process that later decisions read.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

struct caller {
	uid_t uid;
	gid_t gid;
	char *user;	      /* its name, or the number where it has none */
	char *home;	      /* of the user's entry, else $HOME; NULL: neither */
	char *sudo_home;      /* of who became root by sudo; NULL: nobody did */
	char *cwd;	      /* absolute */
	char *const *environ; /* borrowed, as it was at start */
	bool terminal;	      /* standard input and output are terminals */
	struct rlimit core;   /* its limit of core dumps; not read by caller_init() */
};

/* Reads the process. `block`, its environment, is borrowed. */
void caller_init(struct caller *caller, char *const *block);
void caller_deinit(struct caller *caller);

/* The value of a variable, also an empty one; NULL: unset. Borrowed. */
const char *caller_variable(const struct caller *caller, const char *name);
/* The same; blank (empty or white space) counts as unset. */
const char *caller_nonblank(const struct caller *caller, const char *name);
