/* SPDX-License-Identifier: Apache-2.0 */
/* The INI reader: whatever the bytes, a whole result or one line of error with its place. */
#include "broker/base/err.h"
#include "broker/base/ini.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_section(const struct ini *ini, const struct ini_section *section)
{
	if (ini_find_section(ini, section->name) != section || !section->name[0])
		abort();
	for (size_t e = 0; e < section->count; e++) {
		const struct ini_entry *const entry = &section->entries[e];
		const size_t len = strlen(entry->value);
		if (ini_find_entry(section, entry->key) != entry || !entry->key[0])
			abort();
		if (entry->line <= section->line || len > INI_MAX_LINE_BYTES)
			abort();
		if (len && (strchr(" \t", entry->value[0]) || strchr(" \t", entry->value[len - 1])))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_INI struct ini ini = {0};
	struct err err = {0};

	if (ini_parse(&ini, "f", (const char *)data, size, &err)) {
		if (err.code != ERR_INVALID || strncmp(err.text, "f:", 2) != 0 ||
		    strchr(err.text, '\n'))
			abort();
		return 0;
	}
	for (size_t s = 0; s < ini.count; s++)
		check_section(&ini, &ini.sections[s]);
	return 0;
}
