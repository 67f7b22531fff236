/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/profile_choice.h"

#include "broker/base/err.h"
#include "broker/base/json.h"
#include "broker/base/log.h"
#include "sandbox/commands.h"
#include "sandbox/plan/providers.h"

#include <string.h>

#define DEFAULT_PROFILE "default"

static bool is_of(const json_t *profile, const struct provider *provider)
{
	const char *const backend = json_get_string(profile, "backend");

	return !provider || !provider->backend || (backend && !strcmp(backend, provider->backend));
}

static const json_t *find(const json_t *profiles, const char *name)
{
	const json_t *profile;
	size_t i;

	json_array_foreach(profiles, i, profile) {
		const char *const its_name = json_get_string(profile, "name");
		if (its_name && !strcmp(its_name, name))
			return profile;
	}
	return NULL;
}

/* The only one of the provider's, else the one called "default", else NULL. */
static const json_t *find_default(const json_t *profiles, const struct provider *provider)
{
	const json_t *found = NULL;
	const json_t *profile;
	size_t count = 0;
	size_t i;

	json_array_foreach(profiles, i, profile)
		if (is_of(profile, provider)) {
			found = profile;
			count++;
		}
	if (count == 1)
		return found;
	found = find(profiles, DEFAULT_PROFILE);
	return found && is_of(found, provider) ? found : NULL;
}

int profile_choose(const json_t *status, const char *name, const struct provider *provider,
		   struct profile_choice *out, struct err *err)
{
	const json_t *const profiles = json_object_get(status, "profiles");
	const json_t *const profile = name ? find(profiles, name) :
					     find_default(profiles, provider);
	struct quoted quoted;

	if (!profile && name) {
		(void)err_set(err, ERR_INVALID, "the broker has no profile %s",
			      quote_str(&quoted, name));
		return STATUS_REFUSED;
	}
	if (!profile) {
		(void)err_set(err, ERR_USAGE,
			      "the broker has several profiles, or none: name one with --profile");
		return STATUS_USAGE;
	}
	if (!is_of(profile, provider)) {
		(void)err_set(err, ERR_INVALID, "profile %s is not of provider %s",
			      quote_str(&quoted, name), provider->name);
		return STATUS_REFUSED;
	}
	*out = (struct profile_choice){
		.name = json_get_string(profile, "name"),
		.project = json_get_string(profile, "project"),
		.location = json_get_string(profile, "location"),
	};
	return STATUS_OK;
}
