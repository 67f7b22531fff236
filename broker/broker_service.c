/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles and endpoints of one configuration, built beside those of another.
 */
#include "broker/broker.h"

#include "broker/base/alloc.h"
#include "broker/base/err.h"
#include "broker/base/log.h"
#include "broker/config.h"
#include "broker/endpoint.h"
#include "broker/net/listen.h"
#include "broker/profile.h"

#include <string.h>

static bool holds(const struct service *service, const struct endpoint *endpoint)
{
	for (size_t i = 0; i < service->endpoint_count; i++)
		if (service->endpoints[i] == endpoint)
			return true;
	return false;
}

/* An endpoint of the old service that listens where this profile wants to. */
static struct endpoint *find_endpoint(const struct service *old,
				      const struct profile_config *wanted)
{
	for (size_t i = 0; i < old->endpoint_count; i++) {
		const struct profile_config *const settings =
			endpoint_profile(old->endpoints[i])->settings;
		const uint16_t port = address_port(&settings->listen);
		if (address_same_ip(&settings->listen, &wanted->listen) &&
		    port == address_port(&wanted->listen) &&
		    (port || !strcmp(settings->name, wanted->name)))
			return old->endpoints[i];
	}
	return NULL;
}

static int add_endpoint(struct broker *broker, struct profile *profile, const struct service *old,
			struct service *out, struct err *err)
{
	const struct endpoint_context context = broker_endpoint_context(broker);
	struct endpoint *endpoint = find_endpoint(old, profile->settings);
	struct endpoint_options standing = {.address = profile->settings->listen, .pin = PIN_NONE};
	int fd;

	if (!endpoint && (listen_tcp(&standing.address, &fd, err) ||
			  endpoint_open(&context, profile, &standing, fd, &endpoint, err)))
		return err_prefix(err, "profile %s", profile->settings->name);
	out->endpoints[out->endpoint_count++] = endpoint;
	return 0;
}

int service_build(struct broker *broker, struct config *config, const struct service *old,
		  struct service *out, struct err *err)
{
	struct service next = {
		.config = config_ref(config),
		.profiles = xcalloc(config->profile_count, sizeof(struct profile *)),
		.endpoints = xcalloc(config->profile_count, sizeof(struct endpoint *)),
	};

	for (size_t i = 0; i < config->profile_count; i++) {
		const struct profile_config *const settings = &config->profiles[i];
		struct profile *const profile =
			profile_new(config, settings, broker->web, broker->cache,
				    broker_counters(broker, settings->name));
		next.profiles[next.profile_count++] = profile;
		if (address_is_set(&settings->listen) &&
		    add_endpoint(broker, profile, old, &next, err)) {
			service_drop(&next, old);
			return -1;
		}
	}
	*out = next;
	return 0;
}

void service_drop(struct service *service, const struct service *other)
{
	for (size_t i = 0; i < service->endpoint_count; i++)
		if (!holds(other, service->endpoints[i]))
			endpoint_close(service->endpoints[i], NULL);
	for (size_t i = 0; i < service->profile_count; i++)
		profile_unref(service->profiles[i]);
	free(service->endpoints);
	free(service->profiles);
	config_unref(service->config);
	*service = (struct service){0};
}

/* The profile whose endpoint this is to be. */
static struct profile *profile_of(const struct service *service, const struct endpoint *endpoint)
{
	size_t e = 0;

	for (size_t i = 0; i < service->profile_count; i++) {
		if (!address_is_set(&service->profiles[i]->settings->listen))
			continue;
		if (service->endpoints[e++] == endpoint)
			return service->profiles[i];
	}
	return NULL;
}

void service_swap(struct service *current, struct service *takes_next)
{
	struct service old = *current;

	*current = *takes_next;
	*takes_next = (struct service){0};
	for (size_t i = 0; i < current->endpoint_count; i++)
		endpoint_set_profile(current->endpoints[i],
				     profile_of(current, current->endpoints[i]));
	service_drop(&old, current);
}

struct profile *broker_profile(const struct broker *broker, const char *name)
{
	const struct service *const service = &broker->service;

	for (size_t i = 0; i < service->profile_count; i++)
		if (!strcmp(service->profiles[i]->settings->name, name))
			return service->profiles[i];
	return NULL;
}
