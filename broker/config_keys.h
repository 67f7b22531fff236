/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sections and keys of the configuration, one line a key.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config_type;

struct config_key {
	const char *name;
	const struct config_type *type;
	size_t offset;	      /* of the field in the section's struct */
	const char *fallback; /* what is parsed where the key is not written; NULL: stays zeroed */
	const char *expect;   /* of a message: "must be …" */
	bool required;
	int64_t min;
	int64_t max;
};

struct config_section {
	const char *name; /* "broker"; "profile" for every "profile NAME" */
	const struct config_key *keys;
	size_t count;
};

extern const struct config_section config_section_broker;
extern const struct config_section config_section_source;
extern const struct config_section config_section_endpoints;
extern const struct config_section config_section_profile;

/* The key of that name, or NULL. */
const struct config_key *config_key_find(const struct config_section *section, const char *name);
