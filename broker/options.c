/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/options.h"

#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/base/err.h"
#include "broker/base/ini.h"
#include "broker/base/log.h"
#include "broker/base/option_table.h"
#include "broker/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define AT(id) offsetof(struct options, given[id])

static const struct option_spec specs[OPTION_COUNT] = {
	[OPTION_CONFIG] = {"--config", "FILE", OPTION_TEXT, AT(OPTION_CONFIG),
			   .help = "read this file; default: " OPTIONS_DEFAULT_CONFIG},
	[OPTION_CHECK_CONFIG] = {"--check-config", NULL, OPTION_TEXT, AT(OPTION_CHECK_CONFIG),
				 .help = "check the configuration and exit 0 or 2"},
	[OPTION_SERVICE_ACCOUNT] = {"--service-account", "SA", OPTION_TEXT,
				    AT(OPTION_SERVICE_ACCOUNT),
				    .help = "no file: one profile \"default\" of this account"},
	[OPTION_PROJECT] = {"--project", "P", OPTION_TEXT, AT(OPTION_PROJECT),
			    .help = "its project"},
	[OPTION_LISTEN] = {"--listen", "ADDR:PORT", OPTION_TEXT, AT(OPTION_LISTEN),
			   .help = "its standing endpoint; default: sessions only"},
	[OPTION_SOURCE] = {"--source", "TYPE[:FILE]", OPTION_TEXT, AT(OPTION_SOURCE),
			   .help = "adc (default), file:FILE, gcloud, metadata or offline"},
	[OPTION_LIFETIME] = {"--lifetime", "D", OPTION_TEXT, AT(OPTION_LIFETIME),
			     .help = "of a minted token, 5m to 12h; default: 1h"},
	[OPTION_CONTROL] = {"--control", "PATH", OPTION_TEXT, AT(OPTION_CONTROL),
			    .help = "the control socket"},
	[OPTION_ALLOW_WILDCARD_LISTEN] = {"--allow-wildcard-listen", NULL, OPTION_TEXT,
					  AT(OPTION_ALLOW_WILDCARD_LISTEN),
					  .help = "let --listen name 0.0.0.0 or [::]"},
	[OPTION_CA_FILE] = {"--ca-file", "FILE", OPTION_TEXT, AT(OPTION_CA_FILE),
			    .help = "a CA bundle for the cloud's endpoints"},
	[OPTION_VERSION] = {"--version", NULL, OPTION_TEXT, AT(OPTION_VERSION),
			    .help = "print the version and exit"},
	[OPTION_HELP] = {"--help", NULL, OPTION_TEXT, AT(OPTION_HELP),
			 .help = "print this and exit"},
};

_Static_assert(OPTION_COUNT <= OPTION_TABLE_MAX, "a table has so many options");

static const struct option_table table = {.specs = specs, .count = OPTION_COUNT};

/* The key of the file that an option stands for; those without one steer the program. */
static const struct setting {
	const char *section;
	const char *key;
	bool is_path;
} settings[OPTION_COUNT] = {
	[OPTION_SERVICE_ACCOUNT] = {.section = "profile", .key = "service_account"},
	[OPTION_PROJECT] = {.section = "profile", .key = "project"},
	[OPTION_LISTEN] = {.section = "profile", .key = "listen"},
	[OPTION_SOURCE] = {.section = "source", .key = "type"},
	[OPTION_LIFETIME] = {.section = "profile", .key = "lifetime"},
	[OPTION_CONTROL] = {.section = "broker", .key = "control_socket", .is_path = true},
	[OPTION_ALLOW_WILDCARD_LISTEN] = {.section = "broker", .key = "allow_wildcard_listen"},
	[OPTION_CA_FILE] = {.section = "endpoints", .key = "ca_file", .is_path = true},
};

/* An option that sets a key, or OPTION_COUNT. */
static int first_setting(const struct options *options)
{
	int id = 0;

	while (id < OPTION_COUNT && (!options->given[id] || !settings[id].key))
		id++;
	return id;
}

static int check_together(struct options *out, struct err *err)
{
	static const int needed[] = {OPTION_SERVICE_ACCOUNT, OPTION_PROJECT};
	const int setting = first_setting(out);

	if (setting == OPTION_COUNT) {
		out->config_path = out->given[OPTION_CONFIG];
		if (!out->config_path)
			out->config_path = OPTIONS_DEFAULT_CONFIG;
		return 0;
	}
	if (out->given[OPTION_CONFIG])
		return err_set(err, ERR_USAGE,
			       "%s beside --config; write it into the file, or leave --config out",
			       specs[setting].flag);
	for (size_t i = 0; i < ARRAY_LEN(needed); i++)
		if (!out->given[needed[i]])
			return err_set(err, ERR_USAGE,
				       "%s needs %s %s beside it, or all of it in a file and "
				       "--config FILE",
				       specs[setting].flag, specs[needed[i]].flag,
				       specs[needed[i]].argument);
	return 0;
}

int options_parse(struct options *out, int argc, char **argv, struct err *err)
{
	struct options options = {0};
	struct quoted q;
	int rest = 0;

	if (option_table_read(&table, argc, argv, &options, &rest, err))
		return -1;
	if (rest < argc)
		return err_set(err, ERR_USAGE, "%s is no option; --help lists them",
			       quote_str(&q, argv[rest]));
	if (options.given[OPTION_HELP])
		options.action = OPTIONS_HELP;
	else if (options.given[OPTION_VERSION])
		options.action = OPTIONS_VERSION;
	else if (check_together(&options, err))
		return -1;
	else if (options.given[OPTION_CHECK_CONFIG])
		options.action = OPTIONS_CHECK_CONFIG;
	*out = options;
	return 0;
}

static const char *flag_of(const char *section, const char *key)
{
	for (size_t i = 0; i < OPTION_COUNT; i++)
		if (settings[i].key && !strcmp(settings[i].section, section) &&
		    !strcmp(settings[i].key, key))
			return specs[i].flag;
	return specs[OPTION_SOURCE].flag; /* its FILE is a key of its own */
}

/* A path of the command line is relative to where it was typed. The caller's. */
static char *absolute_path(const char *path)
{
	AUTO_FREE char *here = path[0] && path[0] != '/' ? get_current_dir_name() : NULL;

	return here ? xasprintf("%s/%s", here, path) : xstrdup(path);
}

static struct ini_section *section_for(struct ini *ini, const char *name)
{
	struct ini_section *const found = ini_find_section(ini, name);

	return found ? found : ini_add_section(ini, name, strlen(name), 0);
}

static void add_source(struct ini_section *section, const char *value)
{
	const size_t type_len = strcspn(value, ":");
	AUTO_FREE char *type = xstrndup(value, type_len);

	ini_add_entry(section, "type", type, 0);
	if (!value[type_len])
		return;
	AUTO_FREE char *file = absolute_path(value + type_len + 1);
	ini_add_entry(section, "file", file, 0);
}

static void add_setting(struct ini *ini, enum option_id id, const char *value)
{
	const struct setting *const setting = &settings[id];
	const bool of_profile = !strcmp(setting->section, "profile");
	struct ini_section *const section =
		section_for(ini, of_profile ? "profile default" : setting->section);

	if (id == OPTION_SOURCE) {
		add_source(section, value);
		return;
	}
	AUTO_FREE char *path = setting->is_path ? absolute_path(value) : NULL;
	if (path)
		value = path;
	ini_add_entry(section, setting->key, specs[id].argument ? value : "yes", 0);
}

int options_to_config(const struct options *options, struct config **out, struct err *err)
{
	AUTO_INI struct ini ini = {0};

	if (options->config_path)
		return config_load(options->config_path, out, err);
	for (int id = 0; id < OPTION_COUNT; id++)
		if (options->given[id] && settings[id].key)
			add_setting(&ini, (enum option_id)id, options->given[id]);
	return config_from_ini(&ini, flag_of, out, err);
}

void options_help(struct buf *out)
{
	buf_add(out, "usage: posternd [--config FILE] [--check-config]\n"
		     "       posternd --service-account SA --project P [option...]\n\n");
	option_table_help(&table, out);
}

static const char *variable(const char *name)
{
	const char *const value = getenv(name);

	return value && *value ? value : NULL;
}

void environment_read(struct environment *out)
{
	*out = (struct environment){
		.google_application_credentials = variable("GOOGLE_APPLICATION_CREDENTIALS"),
		.google_external_account_allow_executables =
			variable("GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES"),
		.path = variable("PATH"),
		.all = (const char *const *)environ,
		.cloudsdk_config = variable("CLOUDSDK_CONFIG"),
		.home = variable("HOME"),
		.xdg_runtime_dir = variable("XDG_RUNTIME_DIR"),
		.https_proxy = variable("https_proxy"),
		.no_proxy = variable("no_proxy"),
		.journal_stream = variable("JOURNAL_STREAM"),
	};
	/* The lower-case name comes first, as with curl. */
	if (!out->https_proxy)
		out->https_proxy = variable("HTTPS_PROXY");
	if (!out->no_proxy)
		out->no_proxy = variable("NO_PROXY");
}
