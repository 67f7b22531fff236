/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/config_reader.h"

#include "broker/base/err.h"
#include "broker/base/ini.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const struct ini_entry *config_written(const struct config_reader *reader, const char *section,
				       const char *key)
{
	const struct ini_section *const found = ini_find_section(reader->ini, section);

	return found ? ini_find_entry(found, key) : NULL;
}

const char *config_place(const struct config_reader *reader, const struct ini_section *section,
			 const struct ini_entry *entry, struct config_place *place)
{
	static const char profile[] = "profile ";

	if (reader->flag_of) {
		const bool named = !strncmp(section->name, profile, sizeof(profile) - 1);
		(void)snprintf(place->text, sizeof(place->text), "%s",
			       reader->flag_of(named ? "profile" : section->name, entry->key));
	} else {
		(void)snprintf(place->text, sizeof(place->text), "%.360s:%u: [%.60s] %.60s",
			       reader->ini->path, entry->line, section->name, entry->key);
	}
	return place->text;
}

static int refuse(const struct config_reader *reader, const struct ini_section *section,
		  const struct ini_entry *entry, const char *text)
{
	struct quoted q;
	struct config_place place;

	return err_set(reader->err, ERR_INVALID, "%s %s: %s",
		       config_place(reader, section, entry, &place), quote_str(&q, entry->value),
		       text);
}

int config_refuse(const struct config_reader *reader, const struct ini_section *section,
		  const struct ini_entry *entry, const char *fmt, ...)
{
	char text[ERR_TEXT_SIZE];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return refuse(reader, section, entry, text);
}

int config_refuse_key(const struct config_reader *reader, const char *section, const char *key,
		      const char *fmt, ...)
{
	const struct ini_section *const found = ini_find_section(reader->ini, section);
	const struct ini_entry *const entry = found ? ini_find_entry(found, key) : NULL;
	char text[ERR_TEXT_SIZE];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* A default that does not fit what else is written. */
	if (!entry)
		return err_set(reader->err, ERR_INVALID, "[%.60s] %.60s: %.1200s", section, key,
			       text);
	return refuse(reader, found, entry, text);
}
