/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/commands.h"

#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/base/err.h"
#include "broker/base/log.h"
#include "broker/base/option_table.h"
#include "sandbox/client/notice.h"
#include "sandbox/plan/caller.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HELP_MAX_BYTES ((size_t)16 << 10)
#define SYSTEM_CONTROL "/run/postern/control.sock"

static int version_command(const struct invocation *invocation);

static const struct command table[] = {
	{"run", "[option...] IMAGE [COMMAND...]", "run an agent in a sandbox; run --help",
	 run_command},
	{"env", "--profile NAME | --provider NAME",
	 "open a session, print its variables; env --help", env_command},
	{"session", "list | close ID|--profile NAME|--all", "the sessions that are open",
	 session_command},
	{"status", "[--json]", "what the broker says of itself", status_command},
	{"version", "", "print the version", version_command},
};

struct global_options {
	const char *control;
	bool help;
	bool version;
};

#define AT(field) offsetof(struct global_options, field)

static const struct option_spec specs[] = {
	{"--control", "PATH", OPTION_TEXT, AT(control), .help = "the broker's control socket"},
	{"--version", NULL, OPTION_SWITCH, AT(version), .help = "print the version and exit"},
	{"--help", NULL, OPTION_SWITCH, AT(help), .help = "print this and exit"},
};

static const struct option_table options_table = {.specs = specs, .count = ARRAY_LEN(specs)};

int command_say(const struct buf *text)
{
	if (fwrite(text->data ? text->data : "", 1, text->len, stdout) == text->len &&
	    !fflush(stdout))
		return STATUS_OK;
	notice("standard output: %m");
	return STATUS_FAILED;
}

int command_help(const char *usage, const struct option_table *options)
{
	AUTO_BUF struct buf text;

	buf_init(&text, HELP_MAX_BYTES);
	buf_addf(&text, "usage: postern %s\n\n", usage);
	option_table_help(options, &text);
	return command_say(&text);
}

int command_fail_as(enum status status, const struct err *err)
{
	notice("%s", err->text);
	return (int)status;
}

static enum status status_of(enum err_code code)
{
	switch (code) {
	case ERR_USAGE:
		return STATUS_USAGE;
	case ERR_INVALID:
	case ERR_UNSUPPORTED:
		return STATUS_REFUSED;
	case ERR_NONE:
	case ERR_SYSTEM:
	case ERR_BUSY:
		return STATUS_FAILED;
	}
	return STATUS_FAILED;
}

int command_fail(const struct err *err)
{
	return command_fail_as(status_of(err->code), err);
}

char *control_path(const struct caller *caller, const char *given)
{
	const char *const named = given ? given : caller_nonblank(caller, "POSTERN_CONTROL");
	const char *const runtime = caller_nonblank(caller, "XDG_RUNTIME_DIR");

	if (named)
		return xstrdup(named);
	if (!access(SYSTEM_CONTROL, F_OK) || !runtime)
		return xstrdup(SYSTEM_CONTROL);
	AUTO_FREE char *own = xasprintf("%s/postern/control.sock", runtime);
	return access(own, F_OK) ? xstrdup(SYSTEM_CONTROL) : TAKE(own);
}

void commands_help(struct buf *out)
{
	buf_add(out, "usage: postern [option...] COMMAND [argument...]\n\n");
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		AUTO_FREE char *left = xasprintf("%s %s", table[i].name, table[i].arguments);
		buf_addf(out, "  %-46s %s\n", left, table[i].help);
	}
	buf_add(out, "\n");
	option_table_help(&options_table, out);
}

static int help(void)
{
	AUTO_BUF struct buf text;

	buf_init(&text, HELP_MAX_BYTES);
	commands_help(&text);
	return command_say(&text);
}

static int say_version(void)
{
	AUTO_BUF struct buf text;

	buf_init(&text, HELP_MAX_BYTES);
	buf_add(&text, "postern " POSTERN_VERSION "\n");
	return command_say(&text);
}

static int version_command(const struct invocation *invocation)
{
	struct err err;

	if (invocation->argc == 1)
		return say_version();
	(void)err_set(&err, ERR_USAGE, "version takes no argument");
	return command_fail(&err);
}

static int run_named(const struct invocation *invocation)
{
	struct quoted q;
	struct err err;

	if (invocation->argc < 1) {
		(void)err_set(&err, ERR_USAGE, "no command; --help lists them");
		return command_fail(&err);
	}
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (!strcmp(table[i].name, invocation->argv[0]))
			return table[i].run(invocation);
	(void)err_set(&err, ERR_USAGE, "unknown command %s; --help lists them",
		      quote_str(&q, invocation->argv[0]));
	return command_fail(&err);
}

int commands_main(const struct caller *caller, int argc, char **argv)
{
	struct global_options options = {0};
	struct err err;
	int rest = 0;

	if (option_table_read(&options_table, argc, argv, &options, &rest, &err))
		return command_fail(&err);
	if (options.help)
		return help();
	if (options.version)
		return say_version();
	const struct invocation invocation = {
		.caller = caller,
		.control = options.control,
		.argc = argc - rest,
		.argv = argv + rest,
	};
	return run_named(&invocation);
}
