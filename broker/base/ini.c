/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/base/ini.h"

#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/base/err.h"
#include "broker/base/file.h"
#include "broker/base/log.h"

#include <string.h>

void ini_deinit(struct ini *ini)
{
	for (size_t s = 0; s < ini->count; s++) {
		struct ini_section *const section = &ini->sections[s];
		for (size_t e = 0; e < section->count; e++) {
			free(section->entries[e].key);
			free(section->entries[e].value);
		}
		free(section->entries);
		free(section->name);
	}
	free(ini->sections);
	free(ini->path);
	*ini = (struct ini){0};
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static int check_line(const struct ini *ini, const char *text, size_t len, unsigned line,
		      struct err *err)
{
	if (len > INI_MAX_LINE_BYTES)
		return err_set(err, ERR_INVALID, "%s:%u: line of %zu bytes; at most %d are read",
			       ini->path, line, len, INI_MAX_LINE_BYTES);
	for (size_t i = 0; i < len; i++) {
		const unsigned char c = (unsigned char)text[i];
		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return err_set(err, ERR_INVALID,
				       "%s:%u: control character 0x%02x at column %zu; remove it",
				       ini->path, line, c, i + 1);
	}
	return 0;
}

static int check_indent(const struct ini *ini, const char *text, size_t len, unsigned line,
			struct err *err)
{
	if (len && is_blank(text[0]))
		return err_set(
			err, ERR_INVALID,
			"%s:%u: indented line; lines are not continued, start it at column 1",
			ini->path, line);
	return 0;
}

struct ini_section *ini_find_section(const struct ini *ini, const char *name)
{
	for (size_t s = 0; s < ini->count; s++)
		if (!strcmp(ini->sections[s].name, name))
			return &ini->sections[s];
	return NULL;
}

const struct ini_entry *ini_find_entry(const struct ini_section *section, const char *key)
{
	for (size_t e = 0; e < section->count; e++)
		if (!strcmp(section->entries[e].key, key))
			return &section->entries[e];
	return NULL;
}

struct ini_section *ini_add_section(struct ini *ini, const char *name, size_t len, unsigned line)
{
	ini->sections = xreallocarray(ini->sections, ini->count + 1, sizeof(*ini->sections));
	struct ini_section *const section = &ini->sections[ini->count++];
	*section = (struct ini_section){.name = xstrndup(name, len), .line = line};
	return section;
}

struct ini_entry *ini_add_entry(struct ini_section *section, const char *key, const char *value,
				unsigned line)
{
	section->entries =
		xreallocarray(section->entries, section->count + 1, sizeof(*section->entries));
	struct ini_entry *const entry = &section->entries[section->count++];
	*entry = (struct ini_entry){
		.key = xstrdup(key),
		.value = xstrdup(value),
		.line = line,
	};
	return entry;
}

static int read_section(struct ini *ini, const char *text, size_t len, unsigned line,
			struct err *err)
{
	struct quoted q;

	if (text[len - 1] != ']')
		return err_set(err, ERR_INVALID, "%s:%u: section %s does not end with ]", ini->path,
			       line, quote(&q, text, len));
	if (len < 3)
		return err_set(err, ERR_INVALID, "%s:%u: section [] has no name; give it one",
			       ini->path, line);
	AUTO_FREE char *name = xstrndup(text + 1, len - 2);
	const struct ini_section *const first = ini_find_section(ini, name);
	if (first)
		return err_set(err, ERR_INVALID,
			       "%s:%u: section %s again, first on line %u; join them", ini->path,
			       line, quote(&q, text, len), first->line);
	ini_add_section(ini, name, len - 2, line);
	return 0;
}

static int read_entry(struct ini *ini, const char *text, size_t len, unsigned line, struct err *err)
{
	struct quoted q;
	const char *const equals = memchr(text, '=', len);

	if (!equals || equals == text)
		return err_set(err, ERR_INVALID, "%s:%u: %s is not \"key = value\"", ini->path,
			       line, quote(&q, text, len));
	if (!ini->count)
		return err_set(err, ERR_INVALID, "%s:%u: %s stands before the first [section]",
			       ini->path, line, quote(&q, text, len));
	size_t key_len = (size_t)(equals - text);
	while (is_blank(text[key_len - 1]))
		key_len--;
	const char *value = equals + 1;
	while (value < text + len && is_blank(*value))
		value++;
	struct ini_section *const section = &ini->sections[ini->count - 1];
	AUTO_FREE char *key = xstrndup(text, key_len);
	const struct ini_entry *const first = ini_find_entry(section, key);
	if (first)
		return err_set(err, ERR_INVALID,
			       "%s:%u: key %s again in [%s], first on line %u; keep one", ini->path,
			       line, quote_str(&q, key), section->name, first->line);
	AUTO_FREE char *copy = xstrndup(value, (size_t)(text + len - value));
	ini_add_entry(section, key, copy, line);
	return 0;
}

int ini_parse(struct ini *ini, const char *path, const char *text, size_t len, struct err *err)
{
	const char *const end = text + len;

	ini->path = xstrdup(path);
	for (unsigned line = 1; text < end; line++) {
		const char *const newline = memchr(text, '\n', (size_t)(end - text));
		const char *const next = newline ? newline + 1 : end;
		size_t line_len = (size_t)((newline ? newline : end) - text);
		if (check_line(ini, text, line_len, line, err))
			return -1;
		while (line_len && is_blank(text[line_len - 1]))
			line_len--;
		if (check_indent(ini, text, line_len, line, err))
			return -1;
		if (line_len && text[0] == '[') {
			if (read_section(ini, text, line_len, line, err))
				return -1;
		} else if (line_len && text[0] != '#' && text[0] != ';') {
			if (read_entry(ini, text, line_len, line, err))
				return -1;
		}
		text = next;
	}
	return 0;
}

int ini_read(struct ini *ini, const char *path, struct err *err)
{
	AUTO_BUF struct buf text;

	buf_init(&text, INI_MAX_FILE_BYTES);
	if (file_read(path, &text, NULL, err))
		return -1;
	return ini_parse(ini, path, text.data ? text.data : "", text.len, err);
}
