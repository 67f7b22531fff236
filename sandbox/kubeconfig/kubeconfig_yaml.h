/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YAML as a kubeconfig needs it: one document of maps, lists and text. What could make two readers of
 * one file see two things is refused: anchors, aliases, merge keys, tags, duplicate keys, further
 * documents. This is the one user of libyaml.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stdbool.h>
#include <stddef.h>

struct err;

/* Bounds of what is accepted. */
#define YAML_MAX_BYTES ((size_t)1 << 20)
#define YAML_MAX_DEPTH 16
#define YAML_MAX_KEYS 256 /* of one map */
#define YAML_MAX_KEY_BYTES 256
#define YAML_MAX_VALUES 65536 /* of the file */

enum yaml_kind {
	YAML_KIND_TEXT,
	YAML_KIND_MAP,
	YAML_KIND_LIST,
};

struct yaml_member;

struct yaml_value {
	enum yaml_kind kind;
	unsigned line;
	bool plain; /* text without quotes: null, true and numbers mean something */
	char *text; /* of text only; without a NUL inside; cleared when freed */
	struct yaml_member *members;
	size_t count;
};

struct yaml_member {
	char *key; /* NULL in a list */
	unsigned line;
	struct yaml_value value;
};

#define AUTO_YAML CLEANUP(yaml_value_deinit)

/*
 * Reads the bytes into a zeroed value. Errors are "NAME:LINE: what and the repair" and hold nothing of
 * the bytes.
 */
NODISCARD int yaml_read(struct yaml_value *out, const char *name, const char *bytes, size_t len,
			struct err *err);
void yaml_value_deinit(struct yaml_value *value);

/* The value at `key` of a map; NULL where there is none, or no map. Borrowed. */
const struct yaml_value *yaml_get(const struct yaml_value *map, const char *key);
/* The text at `key`; NULL where there is none, something else, or something empty. Borrowed. */
const char *yaml_get_text(const struct yaml_value *map, const char *key);
/* NULL, null, an empty text or an empty list: what a client takes for an absent key. */
bool yaml_is_empty(const struct yaml_value *value);
