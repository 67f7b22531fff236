/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration's syntax: [section], key = value, comments (# or ;) on lines of their own. Nothing
 * is cut, folded or guessed: what does not fit is an error with file and line.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stddef.h>

struct err;

/* Bytes of a line, and of a whole file, that are accepted. */
#define INI_MAX_LINE_BYTES 4096
#define INI_MAX_FILE_BYTES (1 << 20)

struct ini_entry {
	char *key;
	char *value;
	unsigned line;
};

struct ini_section {
	char *name;
	unsigned line;
	struct ini_entry *entries;
	size_t count;
};

struct ini {
	char *path;
	struct ini_section *sections;
	size_t count;
};

#define AUTO_INI CLEANUP(ini_deinit)

void ini_deinit(struct ini *ini);

/*
 * Adds a section or an entry, for a configuration that comes from elsewhere; strings are copied. What
 * they return is good until the next one of its kind is added.
 */
struct ini_section *ini_add_section(struct ini *ini, const char *name, size_t len, unsigned line);
struct ini_entry *ini_add_entry(struct ini_section *section, const char *key, const char *value,
				unsigned line);

/* The section or entry of that name, or NULL. Borrowed. */
struct ini_section *ini_find_section(const struct ini *ini, const char *name);
const struct ini_entry *ini_find_entry(const struct ini_section *section, const char *key);

/*
 * Reads the file into a zeroed ini. Refused, as "FILE:LINE: what and the repair": a duplicate section or
 * key, a line before the first section, an indented or over-long line, a NUL or other control byte, a
 * line without "=", an empty key or section name.
 */
NODISCARD int ini_read(struct ini *ini, const char *path, struct err *err);

/* The same from memory; path is only what errors call it. */
NODISCARD int ini_parse(struct ini *ini, const char *path, const char *text, size_t len,
			struct err *err);
