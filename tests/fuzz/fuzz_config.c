/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration: whatever the file, a whole value that keeps its promises or one line of error. */
#include "broker/base/err.h"
#include "broker/base/log.h"
#include "broker/base/parse.h"
#include "broker/config.h"
#include "broker/net/origin.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void check_endpoint(const struct config *config, const char *url)
{
	check(!origin_is_plain(url) ||
	      (config->endpoints.allow_http_loopback && origin_is_loopback(url)));
	check(strpbrk(url, " @?#\"") == NULL && url[strlen(url) - 1] != '/');
}

static void check_profile(const struct config *config, const struct profile_config *profile)
{
	check(config_find_profile(config, profile->name) == profile);
	check(text_is_email(profile->service_account));
	check(strpbrk(profile->service_account, "/?#:% ") == NULL);
	check(!strcmp(profile->backend, "vertex") && profile->project[0] && profile->location[0]);
	check(profile->scopes.count >= 1);
	check(profile->lifetime_s >= 300 && profile->lifetime_s <= 43200);
	check(profile->refresh_margin_s >= 1);
	check(3 * profile->refresh_margin_s <= profile->lifetime_s);
	check(profile->allow_peers.automatic == (profile->allow_peers.count == 0));
	check(!address_is_wildcard(&profile->listen) || config->broker.allow_wildcard_listen);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config *parsed = NULL;
	struct err err = {0};

	/* Without the warnings of what is odd. */
	log_init(LOG_LEVEL_ERROR, false);
	if (config_parse("f", (const char *)data, size, &parsed, &err)) {
		check(!parsed && err.code != ERR_NONE);
		check(!strncmp(err.text, "f:", 2) && !strchr(err.text, '\n'));
		return 0;
	}
	AUTO_CONFIG struct config *config = parsed;
	check(config->profile_count >= 1);
	check_endpoint(config, config->endpoints.iamcredentials);
	check_endpoint(config, config->endpoints.oauth2);
	check_endpoint(config, config->endpoints.sts);
	check_endpoint(config, config->endpoints.iam);
	check(!strcmp(config->source.type, "file") == (config->source.file != NULL));
	for (size_t i = 0; i < config->profile_count; i++)
		check_profile(config, &config->profiles[i]);
	return 0;
}
