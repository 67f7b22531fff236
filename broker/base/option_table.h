/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command lines read by a table: one line an option says its flag, what it takes, where that goes and
 * its help.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stddef.h>

struct buf;
struct err;

/* Options that a table may have. */
#define OPTION_TABLE_MAX 32

enum option_kind {
	OPTION_TEXT,	 /* const char *, borrowed, never blank; once. "" where it takes none */
	OPTION_LIST,	 /* struct strv, any number of times; holds copies */
	OPTION_SWITCH,	 /* bool; takes no argument */
	OPTION_DURATION, /* int64_t in seconds, 1s to 720h; once */
	OPTION_WORD,	 /* int or enum: the index in `words`; once */
};

struct option_spec {
	const char *flag;     /* "--profile" */
	const char *argument; /* what help calls it; NULL: takes none */
	enum option_kind kind;
	size_t offset;		  /* in the caller's struct */
	const char *const *words; /* NULL-ended */
	/* Refuses a value; may be NULL. */
	int (*check)(const char *value, struct err *err);
	const char *help;
};

struct option_table {
	const struct option_spec *specs;
	size_t count;
	/* Why an option that is not in the table is refused for good; NULL: nothing is known of it. */
	const char *(*refusal)(const char *flag);
};

/*
 * Reads argv[1…] into the struct at `out` up to the first argument that is no option, or behind "--";
 * *rest is its index. ERR_USAGE: unknown, shortened, blank, bad or given twice. ERR_UNSUPPORTED: what
 * `refusal` names. What was read before a failure stays in the struct: its lists are the caller's to
 * free either way.
 */
NODISCARD int option_table_read(const struct option_table *table, int argc, char **argv, void *out,
				int *rest, struct err *err);

/* A line an option. */
void option_table_help(const struct option_table *table, struct buf *out);
