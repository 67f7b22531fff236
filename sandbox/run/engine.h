/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The container engine as a program that is run: found in the caller's PATH, given a clean environment,
 * its answers read from whole JSON.
 */
#pragma once

#include "broker/base/compiler.h"
#include "sandbox/plan/engine_kind.h"

#include <stdint.h>

struct buf;
struct child;
struct child_result;
struct engine;
struct engine_call;
struct environ_block;
struct err;
struct loop;
struct strv;

/* Of every call but the run itself. */
#define ENGINE_CALL_TIMEOUT_MS 30000
#define ENGINE_MAX_ANSWER_BYTES ((size_t)4 << 20)

/*
 * Finds the engine's program in the directories of `search`; nothing is asked yet. The environment of its
 * calls is copied. The caller's.
 */
NODISCARD int engine_new(struct loop *loop, enum engine_kind kind, const char *search,
			 const struct environ_block *block, struct engine **out, struct err *err);
void engine_free(struct engine *engine);

/*
 * Does the engine answer, which is it, and what user has the image? Fills the facts; those of a network
 * (NULL: of none) too, which must be there.
 */
NODISCARD int engine_probe(struct engine *engine, const char *image, const char *network,
			   struct err *err);
/* Borrowed; good as long as the engine. */
const struct engine_facts *engine_facts(const struct engine *engine);

/* Starts "ENGINE args…", args ended by NULL. As child_start(). */
NODISCARD struct child *engine_start(const struct engine *engine, const char *const *args,
				     void (*done)(void *ctx, const struct child_result *result),
				     void *ctx);
/* The same for one that may take longer than most. */
NODISCARD struct child *
engine_start_within(const struct engine *engine, const char *const *args, int64_t timeout_ms,
		    void (*done)(void *ctx, const struct child_result *result), void *ctx);
/*
 * The same as a call whose end is waited for later: several of them cost little more than one. The
 * caller's, until engine_call_end() or engine_call_cancel() takes it.
 */
NODISCARD struct engine_call *engine_call_start(const struct engine *engine,
						const char *const *args);
/*
 * Turns the loop until the call has ended, and appends its standard output to out (may be NULL). -1
 * where it did not exit with 0, with the first line that it wrote to standard error. Takes the call.
 */
NODISCARD int engine_call_end(struct engine_call *takes_call, struct buf *out, struct err *err);
/* Ends a call that nobody waits for any more, or does nothing with NULL. */
void engine_call_cancel(struct engine_call *takes_call);
/* Both in one. */
NODISCARD int engine_ask(const struct engine *engine, const char *const *args, struct buf *out,
			 struct err *err);

/* 0 where a call ("start") exited with 0, else -1 with the first line that it wrote to standard error. */
NODISCARD int engine_read_result(const struct engine *engine, const char *what,
				 const struct child_result *result, struct err *err);

/* What engines differ in: one file each. */
struct engine_driver {
	enum engine_kind kind;
	/* Reads `info`, the version too, and asks more where it must. */
	int (*probe)(struct engine *engine, struct engine_facts *facts, struct err *err);
	/* What `network inspect` calls a network's driver. */
	const char *driver_key;
};

extern const struct engine_driver engine_docker;
extern const struct engine_driver engine_podman;
/* Keeps a text (NULL: none) as long as the engine lives; for the facts. Borrowed. */
const char *engine_keep(struct engine *engine, const char *text);
