/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kubeconfig, reduced to the one context that crosses into the sandbox, and refused where it holds
 * more than a sandbox may have. Nothing is run, and no server is asked.
 */
#pragma once

#include "broker/base/compiler.h"
#include "broker/base/strv.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct clock;
struct err;
struct secret;

struct kubeconfig_options {
	const char *context;	   /* NULL: the file's current-context */
	const char *loopback_host; /* what the sandbox calls this host: host.docker.internal */
	const char *creds_dir;	   /* where the sandbox sees its credentials: /creds */
	bool allow_admin;	   /* client certificates may cross */
	int64_t timeout_s;	   /* of the run; 0: none */
	const struct clock *clock;
};

/* A file whose token the launcher keeps in step: `source` here, creds_dir/`name` there. */
struct kubeconfig_token_file {
	char *source;
	char *name;
};

struct kubeconfig {
	struct secret *json; /* the file to write */
	struct kubeconfig_token_file *token_files;
	size_t token_file_count;
	struct strv warnings; /* one line each, for people */
	char *context;
};

#define AUTO_KUBECONFIG CLEANUP(kubeconfig_free_p)

/*
 * Reads `path` (regular, no symlink, at most 1 MiB). Errors and warnings hold no value of the file but
 * the names of context, cluster and user, quoted, and a warning the time at which a token ends.
 */
NODISCARD int kubeconfig_reduce(const char *path, const struct kubeconfig_options *options,
				struct kubeconfig **out, struct err *err);
/* The same of bytes; path is what errors call them and where relative paths start. */
NODISCARD int kubeconfig_reduce_bytes(const char *path, const char *bytes, size_t len,
				      const struct kubeconfig_options *options,
				      struct kubeconfig **out, struct err *err);
/* NULL is fine. */
void kubeconfig_free(struct kubeconfig *kubeconfig);

static inline void kubeconfig_free_p(struct kubeconfig **kubeconfig)
{
	kubeconfig_free(*kubeconfig);
}
