/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of kubeconfig.c share: the entries that were chosen, what was read from them, and how
 * they are refused.
 */
#pragma once

#include "broker/base/buf.h"
#include "broker/base/compiler.h"

#include <stdbool.h>

struct err;
struct kubeconfig_options;
struct strv;
struct yaml_value;

/* Bytes of a CA or key that is embedded. */
#define KUBECONFIG_MAX_PEM_BYTES ((size_t)1 << 20)

enum kubeconfig_kind {
	KUBECONFIG_CONTEXT,
	KUBECONFIG_CLUSTER,
	KUBECONFIG_USER,
	KUBECONFIG_KINDS,
};

struct kubeconfig_entry {
	const char *name;
	unsigned line;
	const struct yaml_value *body; /* a map */
};

/* The keys that may cross, as they are written; NULL where absent or empty. Borrowed from the tree. */
struct kubeconfig_written {
	const struct yaml_value *namespace;
	const struct yaml_value *server;
	const struct yaml_value *tls_server_name;
	const struct yaml_value *insecure;
	const struct yaml_value *disable_compression;
	const struct yaml_value *ca;
	const struct yaml_value *ca_data;
	const struct yaml_value *token;
	const struct yaml_value *token_file;
	const struct yaml_value *certificate;
	const struct yaml_value *certificate_data;
	const struct yaml_value *key;
	const struct yaml_value *key_data;
};

struct kubeconfig_reading {
	const char *path;
	const struct kubeconfig_options *options;
	const struct yaml_value *root;
	struct kubeconfig_entry entries[KUBECONFIG_KINDS];
	struct kubeconfig_written written;
	struct strv *warnings;
	struct err *err;

	/* What crosses. */
	char *server;
	char *tls_server_name; /* NULL: the server's own */
	bool insecure;
	bool disable_compression;
	struct buf ca; /* PEM; empty: what the sandbox trusts */
	struct buf certificate;
	struct buf key;
	const char *token; /* borrowed from the tree */
	char *token_file;  /* the path on this host; the token is not used then */
};

/* "cluster" and so on. */
const char *kubeconfig_kind_name(enum kubeconfig_kind kind);

/* Refuses: file and line, the entry by name, the message, which says the repair. Returns -1. */
int kubeconfig_refuse(const struct kubeconfig_reading *reading, enum kubeconfig_kind kind,
		      unsigned line, const char *message);
/* Adds a warning with the entry's name in front. */
void kubeconfig_warn(const struct kubeconfig_reading *reading, enum kubeconfig_kind kind,
		     const char *message);
/* A path as the file means it, the caller's: relative ones start where the file lies. */
char *kubeconfig_resolve(const struct kubeconfig_reading *reading, const char *path);

/* kubeconfig_select.c: finds the context, its cluster and its user. */
NODISCARD int kubeconfig_select(struct kubeconfig_reading *reading);
/* kubeconfig_check.c: every key of the three against the table of what may cross. */
NODISCARD int kubeconfig_check(struct kubeconfig_reading *reading);
/* kubeconfig_cluster.c, kubeconfig_user.c: the values of what may cross. */
NODISCARD int kubeconfig_read_cluster(struct kubeconfig_reading *reading);
NODISCARD int kubeconfig_read_user(struct kubeconfig_reading *reading);
/* kubeconfig_server.c: fills server and, for a server on this host, tls_server_name. */
NODISCARD int kubeconfig_read_server(struct kubeconfig_reading *reading);
/* kubeconfig_embed.c: appends the PEM that `data` (base64) or else `file` holds, checked. */
NODISCARD int kubeconfig_embed_ca(struct kubeconfig_reading *reading);
NODISCARD int kubeconfig_embed_client(struct kubeconfig_reading *reading);
/* kubeconfig_write.c: the JSON; appended to a sensitive buffer. */
void kubeconfig_write(const struct kubeconfig_reading *reading, struct buf *out);
/* The file in creds_dir that holds the token of a token file. */
#define KUBECONFIG_TOKEN_NAME "token"
