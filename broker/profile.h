/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile at work: its settings, its recipe and the tokens that its endpoints share. Counted by
 * reference, so that a request ends with the profile it began with.
 */
#pragma once

#include "broker/base/compiler.h"
#include "broker/config.h"
#include "broker/counters.h"

#include <sys/types.h>

struct http_server;
struct profile;
struct recipe;
struct recipe_backend;
struct token_cache;
struct token_entry;

struct profile {
	size_t refs;
	struct config *config; /* holds `settings` */
	const struct profile_config *settings;
	const struct recipe_backend *backend;
	struct recipe *recipe;
	struct token_entry *tokens;
	struct counters *counters; /* borrowed: they outlive a reload */
	gid_t *groups;		   /* those of allow_groups that exist */
	size_t group_count;
};

/* The settings are of `config`, which is referenced. The caller's reference. */
NODISCARD struct profile *profile_new(struct config *config, const struct profile_config *settings,
				      struct http_server *server, struct token_cache *cache,
				      struct counters *counters);
struct profile *profile_ref(struct profile *profile);
/* Where tokens of it are kept: a session's own, or, with NULL, those that are shared. The caller's. */
NODISCARD struct token_entry *profile_token_entry(const struct profile *profile,
						  struct token_cache *cache, const char *session);
/* True where a caller of these groups may open sessions of it. */
bool profile_allows(const struct profile *profile, gid_t gid, const gid_t *groups, size_t count);
/* NULL is fine. */
void profile_unref(struct profile *profile);
