/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line, and what of the environment counts.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stddef.h>

struct buf;
struct config;
struct err;

/* Read where no argument says otherwise. */
#define OPTIONS_DEFAULT_CONFIG "/etc/postern/postern.conf"

enum options_action {
	OPTIONS_SERVE,
	OPTIONS_CHECK_CONFIG,
	OPTIONS_VERSION,
	OPTIONS_HELP,
};

enum option_id {
	OPTION_CONFIG,
	OPTION_CHECK_CONFIG,
	OPTION_SERVICE_ACCOUNT,
	OPTION_PROJECT,
	OPTION_LISTEN,
	OPTION_SOURCE,
	OPTION_LIFETIME,
	OPTION_CONTROL,
	OPTION_ALLOW_WILDCARD_LISTEN,
	OPTION_CA_FILE,
	OPTION_VERSION,
	OPTION_HELP,
	OPTION_COUNT,
};

struct options {
	enum options_action action;
	const char *config_path; /* NULL: the settings are the flags */
	/* The argument of each option that was given, "" for one that takes none; borrowed. */
	const char *given[OPTION_COUNT];
};

/*
 * Reads the arguments, which must outlive *out. Refused with ERR_USAGE: an unknown option, one
 * given twice, a missing argument, a positional one, flags beside --config, and flags that do not
 * make a profile. --help and --version win over what else is there.
 */
NODISCARD int options_parse(struct options *out, int argc, char **argv, struct err *err);

/*
 * The configuration they ask for: of the file, or one profile "default" of the flags. The caller's
 * reference. Errors as config_load()'s; of a flag they read `--lifetime "5": …`.
 */
NODISCARD int options_to_config(const struct options *options, struct config **out,
				struct err *err);

/* The text of --help; the buffer has room for 4 KiB. */
void options_help(struct buf *out);

/* Borrowed from the environment; NULL where unset or empty. */
struct environment {
	const char *google_application_credentials;
	const char *google_external_account_allow_executables;
	const char *path;
	const char *const *all; /* NAME=value, ended by NULL */
	const char *cloudsdk_config;
	const char *home;
	const char *xdg_runtime_dir;
	const char *https_proxy;
	const char *no_proxy;
	const char *journal_stream;
};

void environment_read(struct environment *out);
