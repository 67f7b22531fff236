/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directories of runs: one a run, 0700, held by a lock for as long as its launcher lives.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stdbool.h>
#include <stddef.h>

struct caller;
struct err;

/* In a run's directory: what is mounted into the sandbox, and what the engine's client sees as home. */
#define RUN_DIR_CREDS "creds"

struct run_dir {
	char *path; /* absolute; NULL: none */
	int lock;   /* the directory itself, locked; -1: none */
};

/*
 * Where the directories of all the caller's runs are: "postern-runs" in XDG_RUNTIME_DIR, else (root) in
 * /run, else "/tmp/postern-runs-UID". The caller's. Nothing is made.
 */
NODISCARD char *run_dir_base(const struct caller *caller);

/* Makes BASE/ID with its creds/ and locks it; BASE too where it is missing. */
NODISCARD int run_dir_make(struct run_dir *out, const char *base, const char *id, struct err *err);
/* Writes a new file of the run with the mode, whatever the umask. */
NODISCARD int run_dir_write(const char *path, unsigned mode, const char *data, size_t len,
			    struct err *err);
/* An empty directory of the run. */
NODISCARD int run_dir_make_folder(const char *path, unsigned mode, struct err *err);
/* Removes it with what is in it, and forgets it. */
void run_dir_remove(struct run_dir *dir);
/* The same by its path, for when its launcher is dead. */
void run_dir_remove_path(const char *path);
/* Removes those whose launcher is dead. */
void run_dir_sweep(const char *base);
