/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The subcommands of postern, one line each in a table, and what they return.
 */
#pragma once

#include "sandbox/client/exit_status.h"

#include <stddef.h>

struct buf;
struct caller;
struct err;
struct option_table;

/* What every subcommand gets. */
struct invocation {
	const struct caller *caller;
	/* --control before the subcommand; NULL: the subcommand's own, else the default. */
	const char *control;
	/* The arguments: argv[0] is the subcommand's name. */
	int argc;
	char **argv;
};

struct command {
	const char *name;
	const char *arguments;
	const char *help;
	int (*run)(const struct invocation *invocation);
};

/* Runs what the arguments name. Returns the exit status. */
int commands_main(const struct caller *caller, int argc, char **argv);

/* The text of --help; the buffer has room for 16 KiB. */
void commands_help(struct buf *out);

/* One file each. */
int run_command(const struct invocation *invocation);
int env_command(const struct invocation *invocation);
int session_command(const struct invocation *invocation);
int status_command(const struct invocation *invocation);

/*
 * The control socket: `given` (an option's argument, or NULL), else POSTERN_CONTROL, else the first
 * that exists of the two defaults, else the first of them. The caller's.
 */
char *control_path(const struct caller *caller, const char *given);

/* "postern: text" on standard error, and the status that the error's code means: 2, 3 or 1. */
int command_fail(const struct err *err);
/* The same with a status of the caller's choice. */
int command_fail_as(enum status status, const struct err *err);

/* Writes to standard output. Returns the exit status: 0, or 1 where it could not be written. */
int command_say(const struct buf *text);
/* "usage: postern USAGE" and a line an option, on standard output. Returns the exit status. */
int command_help(const char *usage, const struct option_table *options);
