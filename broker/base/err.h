/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An error: a closed code for the program and one line for people. Functions that fail return -1 and
 * fill the struct err they were given last; success leaves it alone. Never a secret in the text.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stdarg.h>

enum err_code {
	ERR_NONE = 0,
	ERR_USAGE,	 /* the command line is off */
	ERR_INVALID,	 /* a file, a value or an answer is not what it should be */
	ERR_UNSUPPORTED, /* well-formed, but nothing that this program does */
	ERR_SYSTEM,	 /* the kernel or a library refused */
	ERR_BUSY,	 /* somebody else has what was asked for */
};

/*
 * Room of a text: a quoted value may take 806 bytes, and what would be right comes behind it.
 */
#define ERR_TEXT_SIZE 1536

struct err {
	enum err_code code;
	char text[ERR_TEXT_SIZE];
};

/* Sets code and text; too long a text is cut. Returns -1, so that `return err_set(…)` reads well. */
int err_set(struct err *err, enum err_code code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* As err_set() with ": " and the text of errnum behind it. */
int err_set_errno(struct err *err, int errnum, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Puts context in front of the text: "context: text". Returns -1. */
int err_prefix(struct err *err, const char *fmt, ...) PRINTF_LIKE(2, 3);
