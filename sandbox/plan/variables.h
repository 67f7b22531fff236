/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Environment variables by name, each with where its value comes from. Values are kept as secrets:
 * printing, argument vectors and errors only ever take the names.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stdbool.h>
#include <stddef.h>

struct secret;

enum variable_source {
	VARIABLE_SESSION, /* the broker's answer */
	VARIABLE_PRESET,  /* the agent's preset */
	VARIABLE_CALLER,  /* the caller's own, asked for by --env */
	VARIABLE_FIXED,	  /* the same in every sandbox */
	VARIABLE_UNSET,	  /* taken out, whatever the image says; has no value */
	VARIABLE_CLIENT,  /* of the engine's process alone */
};

struct variable {
	char *name;
	enum variable_source source;
	/* NULL: VARIABLE_UNSET, or a VARIABLE_SESSION whose session is not open yet. */
	struct secret *value;
};

struct variables {
	struct variable *items;
	size_t count;
};

#define AUTO_VARIABLES CLEANUP(variables_deinit)

void variables_deinit(struct variables *list);

/* Sets or replaces; name and value are copied. NULL as value: none. */
void variables_set(struct variables *list, const char *name, enum variable_source source,
		   const char *value);

/* NULL where it is not there. Borrowed until the list changes. */
struct variable *variables_find(const struct variables *list, const char *name);

/* The word that plans print: session, preset, caller, fixed, unset, client. */
const char *variable_source_name(enum variable_source source);

/* True for [A-Za-z_][A-Za-z0-9_]*, at most 256 bytes. */
bool variable_name_valid(const char *name);

/* The environment of a process: "NAME=value" strings with a NULL behind, cleared when freed. */
struct environ_block {
	char **items;
	size_t count;
};

#define AUTO_ENVIRON_BLOCK CLEANUP(environ_block_deinit)

void environ_block_deinit(struct environ_block *block);
/* Appends what has a value and is not in `except` (NULL: none) to a zeroed or filled block. */
void environ_block_add(struct environ_block *block, const struct variables *list,
		       const struct variables *except);
