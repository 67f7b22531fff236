/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program run beside the loop: the one place that knows processes. Without a shell, in a session of
 * its own, with a clean signal mask and no descriptor but its standard ones.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct child;
struct loop;
struct strv;

/* Bytes of standard error that are kept; the rest is dropped. */
#define CHILD_MAX_ERROR_BYTES 8192

struct child_request {
	/* The program by its path, and its arguments. Whoever is on the host can read them. */
	const struct strv *argv;
	const struct strv *env;	 /* all of its environment, as NAME=value */
	size_t max_output_bytes; /* of standard output */
	int64_t timeout_ms;	 /* 0: none */
	bool pass_input;	 /* its standard input is this process's; else the null device */
	bool pass_output;	 /* so are its output and errors; nothing of them is collected */
};

enum child_end {
	CHILD_EXITED,	   /* status: what it exited with */
	CHILD_SIGNALLED,   /* status: the signal that ended it */
	CHILD_TIMED_OUT,   /* it and what it had started were killed */
	CHILD_TOO_LARGE,   /* likewise: its output passed max_output_bytes */
	CHILD_NOT_STARTED, /* status: the errno */
};

/* Borrowed for the time of the callback; the texts are cleared after it. */
struct child_result {
	enum child_end end;
	int status;
	const char *output; /* NUL-terminated; may hold a secret */
	size_t output_len;
	const char *errors; /* the start of standard error; may hold a secret, never to be logged */
	size_t errors_len;
};

typedef void child_done(void *ctx, const struct child_result *result);

/*
 * Starts it. `done` is called exactly once, later, unless it is cancelled first; the handle is dead once
 * `done` is called. What the program left running ends with it. Does not fail: what is wrong comes as a
 * result.
 */
NODISCARD struct child *child_start(struct loop *loop, const struct child_request *request,
				    child_done *done, void *ctx);
/* To the program alone, not to what it has started. */
void child_signal(const struct child *child, int signo);
/* 0 where it was not started. */
pid_t child_pid(const struct child *child);
/* Kills it, without the callback. NULL is fine. */
void child_cancel(struct child *child);
