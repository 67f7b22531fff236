/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/config.h"

#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/base/err.h"
#include "broker/base/ini.h"
#include "broker/base/parse.h"
#include "broker/config_check.h"
#include "broker/config_keys.h"
#include "broker/config_reader.h"
#include "broker/config_values.h"

#include <string.h>

#define PROFILE_PREFIX "profile "
#define PROFILE_NAME_MAX 32

static void *field_of(void *owner, const struct config_key *key)
{
	return (char *)owner + key->offset;
}

static void release_keys(const struct config_section *kind, void *owner)
{
	for (size_t i = 0; i < kind->count; i++)
		if (kind->keys[i].type->release)
			kind->keys[i].type->release(field_of(owner, &kind->keys[i]));
}

struct config *config_ref(struct config *config)
{
	config->refs++;
	return config;
}

void config_unref(struct config *config)
{
	if (!config || --config->refs > 0)
		return;
	for (size_t i = 0; i < config->profile_count; i++) {
		release_keys(&config_section_profile, &config->profiles[i]);
		free(config->profiles[i].name);
	}
	free(config->profiles);
	release_keys(&config_section_endpoints, &config->endpoints);
	release_keys(&config_section_source, &config->source);
	release_keys(&config_section_broker, &config->broker);
	free(config->path);
	free(config);
}

const struct profile_config *config_find_profile(const struct config *config, const char *name)
{
	for (size_t i = 0; i < config->profile_count; i++)
		if (!strcmp(config->profiles[i].name, name))
			return &config->profiles[i];
	return NULL;
}

static int refuse_unknown_key(const struct config_reader *reader, const struct config_section *kind,
			      const struct ini_section *section, const struct ini_entry *entry)
{
	AUTO_BUF struct buf known;
	struct quoted q;

	buf_init(&known, ERR_TEXT_SIZE);
	for (size_t i = 0; i < kind->count; i++)
		buf_addf(&known, "%s%s", i ? ", " : "", kind->keys[i].name);
	return err_set(reader->err, ERR_INVALID, "%s:%u: [%s] has no key %s; known: %s",
		       reader->ini->path, entry->line, section->name, quote_str(&q, entry->key),
		       known.data);
}

static int read_value(const struct config_reader *reader, const struct config_key *key,
		      const struct ini_section *section, const struct ini_entry *entry, void *field)
{
	struct err why = {0};
	const char *reason = why.text;

	if (!key->type->parse(key, entry->value, field, &why))
		return 0;
	if (!*reason && (strstr(entry->value, " #") || strstr(entry->value, " ;")))
		reason = "a comment needs a line of its own";
	return config_refuse(reader, section, entry, "%s%s%s", reason, *reason ? "; " : "",
			     key->expect);
}

/* The keys that are not written. `section` is NULL where the section is not there at all. */
static int read_fallbacks(const struct config_reader *reader, const struct config_section *kind,
			  const struct ini_section *section, void *owner)
{
	struct err why;

	for (size_t i = 0; i < kind->count; i++) {
		const struct config_key *const key = &kind->keys[i];
		if (section && ini_find_entry(section, key->name))
			continue;
		if (section && key->required)
			return err_set(reader->err, ERR_INVALID, "%s:%u: [%s] lacks %s; it %s",
				       reader->ini->path, section->line, section->name, key->name,
				       key->expect);
		if (key->fallback &&
		    key->type->parse(key, key->fallback, field_of(owner, key), &why))
			abort();
	}
	return 0;
}

static int read_keys(const struct config_reader *reader, const struct config_section *kind,
		     const struct ini_section *section, void *owner)
{
	for (size_t i = 0; section && i < section->count; i++) {
		const struct ini_entry *const entry = &section->entries[i];
		const struct config_key *const key = config_key_find(kind, entry->key);
		if (!key)
			return refuse_unknown_key(reader, kind, section, entry);
		if (read_value(reader, key, section, entry, field_of(owner, key)))
			return -1;
	}
	return read_fallbacks(reader, kind, section, owner);
}

static bool is_profile_name(const char *name)
{
	const size_t len = strlen(name);

	return len >= 1 && len <= PROFILE_NAME_MAX && name[0] != '-' && name[0] != '_' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") == len;
}

static int read_profile(const struct config_reader *reader, struct config *config,
			const struct ini_section *section)
{
	const char *const name = section->name + strlen(PROFILE_PREFIX);
	struct quoted q;

	if (!is_profile_name(name))
		return err_set(reader->err, ERR_INVALID,
			       "%s:%u: name %s of a profile: must be 1 to %d of a-z, 0-9, \"_\" "
			       "and \"-\", the first a letter or digit",
			       reader->ini->path, section->line, quote_str(&q, name),
			       PROFILE_NAME_MAX);
	config->profiles = xreallocarray(config->profiles, config->profile_count + 1,
					 sizeof(*config->profiles));
	struct profile_config *const profile = &config->profiles[config->profile_count++];
	*profile = (struct profile_config){
		.name = xstrdup(name),
		.endpoint_rate = config->broker.endpoint_rate,
		.endpoint_connections = config->broker.endpoint_connections,
	};
	return read_keys(reader, &config_section_profile, section, profile);
}

/* Profiles are read in the file's order; the other sections are looked up, absent ones included. */
static int read_sections(const struct config_reader *reader, struct config *config)
{
	const struct {
		const struct config_section *kind;
		void *owner;
	} singles[] = {
		{&config_section_broker, &config->broker},
		{&config_section_source, &config->source},
		{&config_section_endpoints, &config->endpoints},
	};

	for (size_t i = 0; i < ARRAY_LEN(singles); i++) {
		const char *const name = singles[i].kind->name;
		if (read_keys(reader, singles[i].kind, ini_find_section(reader->ini, name),
			      singles[i].owner))
			return -1;
	}
	for (size_t s = 0; s < reader->ini->count; s++) {
		const struct ini_section *const section = &reader->ini->sections[s];
		if (!strncmp(section->name, PROFILE_PREFIX, strlen(PROFILE_PREFIX)) &&
		    read_profile(reader, config, section))
			return -1;
	}
	return 0;
}

static int refuse_unknown_sections(const struct config_reader *reader)
{
	struct quoted q;

	for (size_t s = 0; s < reader->ini->count; s++) {
		const struct ini_section *const section = &reader->ini->sections[s];
		if (strcmp(section->name, config_section_broker.name) != 0 &&
		    strcmp(section->name, config_section_source.name) != 0 &&
		    strcmp(section->name, config_section_endpoints.name) != 0 &&
		    strncmp(section->name, PROFILE_PREFIX, strlen(PROFILE_PREFIX)) != 0)
			return err_set(reader->err, ERR_INVALID,
				       "%s:%u: unknown section %s; known: [broker], [source], "
				       "[endpoints], [profile NAME]",
				       reader->ini->path, section->line,
				       quote_str(&q, section->name));
	}
	return 0;
}

static void derive_endpoints(struct endpoints_config *endpoints)
{
	const struct {
		const char *service;
		char **url;
	} urls[] = {
		{"iamcredentials", &endpoints->iamcredentials},
		{"oauth2", &endpoints->oauth2},
		{"sts", &endpoints->sts},
		{"iam", &endpoints->iam},
	};

	for (size_t i = 0; i < ARRAY_LEN(urls); i++)
		if (!*urls[i].url)
			*urls[i].url = xasprintf("https://%s.%s", urls[i].service,
						 endpoints->universe_domain);
}

int config_from_ini(const struct ini *ini, config_flag_fn *flag_of, struct config **out,
		    struct err *err)
{
	const struct config_reader reader = {.ini = ini, .flag_of = flag_of, .err = err};
	AUTO_CONFIG struct config *config = xcalloc(1, sizeof(*config));

	config->refs = 1;
	config->path = ini->path ? xstrdup(ini->path) : NULL;
	if (refuse_unknown_sections(&reader) || read_sections(&reader, config))
		return -1;
	if (!config->profile_count)
		return err_set(err, ERR_INVALID,
			       "%s: no profile; add a section [profile NAME] with service_account "
			       "and project",
			       ini->path);
	derive_endpoints(&config->endpoints);
	config->broker.control_group_written = config_written(&reader, "broker", "control_group");
	if (config_check(&reader, config))
		return -1;
	*out = TAKE(config);
	return 0;
}

int config_parse(const char *path, const char *text, size_t len, struct config **out,
		 struct err *err)
{
	AUTO_INI struct ini ini = {0};

	return ini_parse(&ini, path, text, len, err) ? -1 : config_from_ini(&ini, NULL, out, err);
}

int config_load(const char *path, struct config **out, struct err *err)
{
	AUTO_INI struct ini ini = {0};

	if (!ini_read(&ini, path, err))
		return config_from_ini(&ini, NULL, out, err);
	const struct err cause = *err;
	if (cause.code == ERR_SYSTEM)
		return err_set(
			err, cause.code,
			"%s; write a configuration there that the broker's user can read, or "
			"name another by --config FILE",
			cause.text);
	return -1;
}
