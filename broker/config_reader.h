/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was read, while it becomes a configuration: looks up where a value stood, and words the
 * refusals.
 */
#pragma once

#include "broker/base/compiler.h"
#include "broker/config.h"

struct config_key;
struct ini;
struct ini_entry;
struct ini_section;

struct config_reader {
	const struct ini *ini;
	config_flag_fn *flag_of; /* NULL: it is a file */
	struct err *err;	 /* where refusals go */
};

/* The entry as it was written, or NULL. */
const struct ini_entry *config_written(const struct config_reader *reader, const char *section,
				       const char *key);

/* What stands before a message about a written entry: "FILE:LINE: [section] key" or "--flag". */
struct config_place {
	char text[512];
};

const char *config_place(const struct config_reader *reader, const struct ini_section *section,
			 const struct ini_entry *entry, struct config_place *place);

/*
 * Refuses a written value: place, the value quoted, the message. The message says what would be
 * right. Returns -1.
 */
int config_refuse(const struct config_reader *reader, const struct ini_section *section,
		  const struct ini_entry *entry, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* The same by name of a section and of a key that is written there. */
int config_refuse_key(const struct config_reader *reader, const char *section, const char *key,
		      const char *fmt, ...) PRINTF_LIKE(4, 5);
