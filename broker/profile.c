/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/profile.h"

#include "broker/base/alloc.h"
#include "broker/base/log.h"
#include "broker/recipe/recipe.h"
#include "broker/token_cache.h"

#include <grp.h>

/* Looked up once: a directory service may be slow. A group that is not there lets nobody in. */
static void find_groups(struct profile *profile)
{
	const struct strv *const names = &profile->settings->allow_groups;

	profile->groups = xcalloc(names->count, sizeof(gid_t));
	for (size_t i = 0; i < names->count; i++) {
		const struct group *const group = getgrnam(names->items[i]);
		if (group)
			profile->groups[profile->group_count++] = group->gr_gid;
		else
			log_warning("profile %s: allow_groups: no group %s",
				    profile->settings->name, names->items[i]);
	}
}

bool profile_allows(const struct profile *profile, gid_t gid, const gid_t *groups, size_t count)
{
	if (!profile->settings->allow_groups.count)
		return true;
	for (size_t i = 0; i < profile->group_count; i++) {
		if (profile->groups[i] == gid)
			return true;
		for (size_t g = 0; g < count; g++)
			if (profile->groups[i] == groups[g])
				return true;
	}
	return false;
}

struct token_entry *profile_token_entry(const struct profile *profile, struct token_cache *cache,
					const char *session)
{
	const struct profile_config *const settings = profile->settings;
	const struct token_key key = {
		.source = profile->config->source.type,
		.service_account = settings->service_account,
		.scopes = &settings->scopes,
		.delegates = &settings->delegates,
		.lifetime_s = settings->lifetime_s,
		.session = session,
		.profile = settings->name,
	};

	return token_cache_get(cache, &key);
}

struct profile *profile_new(struct config *config, const struct profile_config *settings,
			    struct http_server *server, struct token_cache *cache,
			    struct counters *counters)
{
	struct profile *const profile = xcalloc(1, sizeof(*profile));
	const struct recipe_grant grant = {
		.service_account = settings->service_account,
		.project = settings->project,
		.project_number = settings->project_number,
		.universe_domain = config->endpoints.universe_domain,
		.advertise_host = settings->advertise_host,
		.scopes = &settings->scopes,
	};

	profile->refs = 1;
	profile->config = config_ref(config);
	profile->settings = settings;
	profile->counters = counters;
	profile->backend = recipe_find(settings->backend);
	profile->recipe = profile->backend->open(server, &grant);
	profile->tokens = profile_token_entry(profile, cache, NULL);
	find_groups(profile);
	return profile;
}

struct profile *profile_ref(struct profile *profile)
{
	profile->refs++;
	return profile;
}

void profile_unref(struct profile *profile)
{
	if (!profile || --profile->refs > 0)
		return;
	profile->backend->close(profile->recipe);
	token_entry_unref(profile->tokens);
	free(profile->groups);
	config_unref(profile->config);
	free(profile);
}
