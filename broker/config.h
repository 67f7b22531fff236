/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration as a value: read whole, checked whole, then never changed. A reload builds
 * another one beside it.
 */
#pragma once

#include "broker/base/compiler.h"
#include "broker/base/log.h"
#include "broker/base/strv.h"
#include "broker/net/address.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct ini;

/* [broker] */
struct broker_config {
	char *control_socket; /* NULL: not written */
	char *control_group;
	bool control_group_written; /* by the operator, so that a failure to set it is an error */
	char *audit_log;	    /* a path, "stderr" or "off"; NULL: not written */
	bool audit_required;
	enum log_level log_level;
	unsigned max_sessions;
	unsigned max_sessions_per_user;
	struct address session_listen; /* unset: auto; the port is 0 */
	bool allow_wildcard_listen;
	unsigned endpoint_rate; /* requests a second; 0: no limit */
	unsigned endpoint_connections;
};

/* [source] */
struct source_config {
	char *type;	     /* "adc", "file", "gcloud", "metadata" or "offline" */
	char *file;	     /* with "file", else NULL */
	char *quota_project; /* NULL: none */
	bool adc_metadata;
	char *gcloud;	     /* NULL: found in PATH */
	char *metadata_host; /* HOST or HOST:PORT */
	struct strv subject_token_hosts;
};

/* [endpoints]. The URLs are "https://HOST[:PORT]", or http to loopback; no slash at the end. */
struct endpoints_config {
	char *universe_domain;
	char *iamcredentials;
	char *oauth2;
	char *sts;
	char *iam;
	char *ca_file; /* NULL: the system's */
	bool allow_http_loopback;
};

enum token_sharing {
	TOKEN_SHARING_SESSION, /* every session mints its own */
	TOKEN_SHARING_PROFILE, /* the sessions of a profile share one */
};

/* Who may speak to an endpoint that is not pinned. */
struct peers_config {
	bool automatic; /* by the endpoint's own address; then there are no networks */
	struct cidr *networks;
	size_t count;
};

/* [profile NAME] */
struct profile_config {
	char *name;
	char *backend;
	char *service_account;
	char *project;
	char *location;
	struct strv scopes; /* at least one */
	int64_t lifetime_s;
	int64_t refresh_margin_s; /* the effective one: at most a third of the lifetime */
	struct strv delegates;
	enum token_sharing token_sharing;
	int64_t max_ttl_s;
	struct strv allow_groups; /* empty: whoever may open the control socket */
	struct address listen;	  /* unset: sessions only */
	struct peers_config allow_peers;
	char *advertise_host;
	char *project_number; /* NULL: not served */
	/* Those of [broker] where the profile does not write its own. */
	unsigned endpoint_rate;
	unsigned endpoint_connections;
};

struct config {
	size_t refs;
	char *path; /* NULL: made from flags */
	struct broker_config broker;
	struct source_config source;
	struct endpoints_config endpoints;
	struct profile_config *profiles; /* at least one, in the file's order */
	size_t profile_count;
};

#define AUTO_CONFIG CLEANUP(config_unref_p)

/*
 * Reads and checks the file. On success *out is the caller's reference; on failure `err` is one
 * line that names file, line, section, key, the bad value and what would be right. What is allowed
 * but odd is logged as a warning.
 */
NODISCARD int config_load(const char *path, struct config **out, struct err *err);

/* The same from memory; `path` is only what messages call it. */
NODISCARD int config_parse(const char *path, const char *text, size_t len, struct config **out,
			   struct err *err);

/* What the command line calls the key of that section ("profile" for all): "--lifetime". */
typedef const char *config_flag_fn(const char *section, const char *key);

/*
 * The same of what was read already; the ini stays the caller's. With `flag_of` the settings came
 * from the command line: messages then name the flag instead of file, line and key.
 */
NODISCARD int config_from_ini(const struct ini *ini, config_flag_fn *flag_of, struct config **out,
			      struct err *err);

/* Another reference: what a session started with outlives a reload. */
NODISCARD struct config *config_ref(struct config *config);
/* NULL is fine. */
void config_unref(struct config *config);

/* The profile of that name, or NULL. Borrowed. */
const struct profile_config *config_find_profile(const struct config *config, const char *name);

static inline void config_unref_p(struct config **config)
{
	config_unref(*config);
}
