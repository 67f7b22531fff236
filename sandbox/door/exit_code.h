/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the door ends: one code a cause, from which the launcher makes its own text, and one line on standard
 * error. 125 and above are the engine's and the kernel's.
 */
#pragma once

#include <stdbool.h>

enum exit_code {
	EXIT_ENDED = 0, /* told to end, by the broker or by a signal */
	EXIT_USAGE = 2, /* the command line */
	EXIT_TAKEN = 3, /* the address is in the namespace already: another door's, or the host's */
	EXIT_ALIEN =
		4, /* policy rules, or XFRM policies, that are neither the kernel's nor its own */
	EXIT_DEVICE = 5,   /* the kernel does not let the door bind to lo */
	EXIT_ADDRESS = 6,  /* the address could not be added, or addresses not looked at */
	EXIT_RULE = 7,	   /* a policy rule could not be added or deleted, or rules not looked at */
	EXIT_BIND = 8,	   /* the port could not be had */
	EXIT_CONNECT = 9,  /* no broker at the attach socket */
	EXIT_REFUSED = 10, /* the broker says no; the line says why */
	EXIT_GONE = 11,	   /* the broker went away and was not back in time */
	EXIT_CONFINE = 12, /* privileges could not be given up */
	EXIT_TICKET = 13,  /* no ticket in its file */
	EXIT_PROTOCOL = 14, /* the broker said what the door does not know */
	EXIT_SYSTEM = 15,   /* the kernel refused what every process may do */
};

/* Ends the process with "postern-door: TEXT SUBJECT". */
_Noreturn void die(enum exit_code code, const char *text, const char *subject);

/* The same with errno's own text. */
_Noreturn void die_errno(enum exit_code code, const char *text);

static inline void demand(bool done, enum exit_code code, const char *text)
{
	if (!done)
		die_errno(code, text);
}
