/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kinds of values that configuration keys have: how a text becomes one, and how it is released.
 */
#pragma once

#include "broker/base/compiler.h"

struct config_key;
struct err;

struct config_type {
	/*
	 * Parses into the zeroed field. -1 where the text is not right; `why` may then be filled with the
	 * reason, what would be right is the key's `expect`.
	 */
	int (*parse)(const struct config_key *key, const char *text, void *field, struct err *why);
	/* Releases what the field holds; a zeroed field is fine. NULL: holds nothing. */
	void (*release)(void *field);
};

extern const struct config_type config_type_yes_no;    /* bool */
extern const struct config_type config_type_unsigned;  /* unsigned, in [min, max] */
extern const struct config_type config_type_duration;  /* int64_t seconds, in [min, max] */
extern const struct config_type config_type_log_level; /* enum log_level */
extern const struct config_type config_type_sharing;   /* enum token_sharing */
extern const struct config_type config_type_listen;    /* struct address */
/* struct address with port 0, unset for "auto" */
extern const struct config_type config_type_session_listen;
extern const struct config_type config_type_peers; /* struct peers_config */

/* All below: char *, of at most `max` bytes where the key has a max. */
extern const struct config_type config_type_path;
extern const struct config_type config_type_audit_log;
extern const struct config_type config_type_source;
extern const struct config_type config_type_backend;
extern const struct config_type config_type_group;
extern const struct config_type config_type_project;
extern const struct config_type config_type_number; /* of a project: digits */
extern const struct config_type config_type_location;
extern const struct config_type config_type_email;
extern const struct config_type config_type_host;
extern const struct config_type config_type_host_port; /* the port may be left out */
extern const struct config_type config_type_url;       /* without the slash at the end */

/* struct strv */
extern const struct config_type config_type_emails;
extern const struct config_type config_type_groups; /* may be empty */
extern const struct config_type config_type_hosts;
extern const struct config_type config_type_scopes;
