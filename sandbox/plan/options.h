/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of `postern run`.
 */
#pragma once

#include "broker/base/compiler.h"
#include "broker/base/strv.h"
#include "sandbox/plan/engine_kind.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct buf;
struct err;

enum preflight {
	PREFLIGHT_GRANT, /* the default */
	PREFLIGHT_MINT,
	PREFLIGHT_NONE,
};

enum attach {
	ATTACH_INSIDE, /* the default: the endpoint is in the sandbox's own network namespace */
	ATTACH_GATEWAY,
};

enum stdio {
	STDIO_OUTPUT,	   /* standard input is empty */
	STDIO_INTERACTIVE, /* standard input is passed */
	STDIO_TTY,	   /* and a terminal is allocated */
};

/* Texts are borrowed from the arguments; NULL where not given. */
struct run_options {
	bool help;
	const char *control;
	const char *profile;
	const char *provider; /* as it was written */
	const char *agent;
	const char *kubeconfig;
	const char *context;
	const char *workspace;
	struct strv env;       /* names */
	struct strv env_force; /* names */
	struct strv mounts;    /* SRC:DST[:ro] */
	const char *network;
	const char *user;  /* U[:G], numbers up to 2^31-1 */
	const char *owner; /* [A-Za-z0-9_]{1,128} */
	int64_t timeout_s; /* 0: none */
	bool tty;
	bool interactive;
	enum preflight preflight;
	enum attach attach;
	struct strv shut; /* networks, instead of the default ones */
	enum engine_kind engine;
	struct strv engine_args; /* --name=value, each name allowed */
	bool allow_admin_kubeconfig;
	bool allow_unverified_firewall;
	bool dry_run;
	bool json;
	const char *image; /* NULL with ENGINE_NONE */
	char **command;	   /* ends with NULL; empty: the image's own */
};

#define AUTO_RUN_OPTIONS CLEANUP(run_options_deinit)

void run_options_deinit(struct run_options *options);

/*
 * Reads argv[1…], argv[0] being "run"; the arguments must outlive *out, which the caller clears also
 * after a failure. ERR_USAGE (2): what is no option, a bad value, options that do not go together, no
 * image. ERR_UNSUPPORTED (3): what is an engine's option but would open the sandbox, refused by name.
 */
NODISCARD int run_options_parse(struct run_options *out, int argc, char **argv, struct err *err);

/* The text of `postern run --help`; the buffer has room for 16 KiB. */
void run_options_help(struct buf *out);

/* STDIO_TTY implies that standard input is passed. */
enum stdio run_options_stdio(const struct run_options *options);

/* The words of --preflight and --attach: "grant", "inside". */
const char *preflight_name(enum preflight preflight);
const char *attach_name(enum attach attach);
