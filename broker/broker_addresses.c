/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addresses at which the broker itself is found.
 */
#include "broker/base/log.h"
#include "broker/broker.h"
#include "broker/config.h"
#include "broker/net/bridges.h"
#include "broker/profile.h"
#include "broker/session.h"
#include "emulator/host.h"

#include <string.h>

/* A wildcard address, on either side, is everywhere. */
static bool answers_at(const struct endpoint *endpoint, const struct address *address)
{
	const struct address *const own = endpoint_address(endpoint);

	return address_port(own) == address_port(address) &&
	       (address_is_wildcard(own) || address_is_wildcard(address) ||
		address_same_ip(own, address));
}

/* Who asks for what, of each endpoint that is found on this machine. */
struct question {
	const struct address *address; /* or: */
	const char *name;
	uint16_t port;
};

static bool accepts_name(const struct endpoint *endpoint, const struct question *question)
{
	const struct address *const own = endpoint_address(endpoint);
	const char *const advertised = endpoint_profile(endpoint)->settings->advertise_host;
	char text[ADDRESS_TEXT_SIZE];

	return address_port(own) == question->port &&
	       host_names_endpoint(question->name, strlen(question->name), advertised,
				   address_format_ip(own, text));
}

static bool is_found(const struct endpoint *endpoint, const struct question *question)
{
	return question->address ? answers_at(endpoint, question->address) :
				   accepts_name(endpoint, question);
}

static bool is_any_found(const struct broker *broker, const struct question *question)
{
	for (size_t i = 0; i < broker->service.endpoint_count; i++)
		if (is_found(broker->service.endpoints[i], question))
			return true;
	/* None yet while the broker starts. */
	if (!broker->sessions)
		return false;
	list_for_each(link, sessions_list(broker->sessions)) {
		const struct session *const session = CONTAINER_OF(link, struct session, link);
		/* Inside a sandbox is elsewhere: here the address is the machine's metadata server. */
		if (!session->attachment && is_found(session->endpoint, question))
			return true;
	}
	return false;
}

bool broker_is_own_address(const void *ctx, const struct address *address)
{
	return is_any_found(ctx, &(struct question){.address = address});
}

bool broker_is_own_name(const void *ctx, const char *name, uint16_t port)
{
	return is_any_found(ctx, &(struct question){.name = name, .port = port});
}

void broker_warn_of_addresses(const struct broker *broker)
{
	const struct service *const service = &broker->service;
	char text[ADDRESS_TEXT_SIZE];

	for (size_t i = 0; i < service->endpoint_count; i++) {
		const struct profile_config *const settings =
			endpoint_profile(service->endpoints[i])->settings;
		const struct address *const address = endpoint_address(service->endpoints[i]);
		if (address_is_loopback(address)) {
			if (settings->allow_peers.automatic)
				log_warning("profile %s: its endpoint is on loopback, which serves "
					    "every local user",
					    settings->name);
		} else if (!address_is_wildcard(address) &&
			   !bridges_own(broker->bridges, address)) {
			log_warning("profile %s: this host has no address %s yet; its endpoint "
				    "serves once it has",
				    settings->name, address_format_ip(address, text));
		}
	}
}
