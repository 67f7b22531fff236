/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/profile.h"

#include "broker/base/alloc.h"
#include "broker/recipe/recipe.h"
#include "broker/token_cache.h"

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
	const struct token_key key = {
		.source = config->source.type,
		.service_account = settings->service_account,
		.scopes = &settings->scopes,
		.delegates = &settings->delegates,
		.lifetime_s = settings->lifetime_s,
		.profile = settings->name,
	};

	profile->refs = 1;
	profile->config = config_ref(config);
	profile->settings = settings;
	profile->counters = counters;
	profile->backend = recipe_find(settings->backend);
	profile->recipe = profile->backend->open(server, &grant);
	profile->tokens = token_cache_get(cache, &key);
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
	config_unref(profile->config);
	free(profile);
}
