/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/endpoint.h"

#include "broker/base/alloc.h"
#include "broker/base/clock.h"
#include "broker/base/secret.h"
#include "broker/endpoint_impl.h"
#include "broker/net/http_server.h"
#include "broker/profile.h"

static int add_listener(struct endpoint *endpoint, const struct endpoint_socket *takes_socket,
			struct err *err)
{
	struct http_listener **const listener = &endpoint->listeners[endpoint->listener_count];

	if (http_listener_new(endpoint->context.server, takes_socket->fd, &takes_socket->address,
			      endpoint->profile->settings->endpoint_connections, listener, err))
		return -1;
	http_listener_set_handler(*listener, &endpoint_handler, endpoint);
	endpoint->listener_count++;
	return 0;
}

static void close_listeners(struct endpoint *endpoint)
{
	while (endpoint->listener_count)
		http_listener_close(endpoint->listeners[--endpoint->listener_count]);
}

int endpoint_open(const struct endpoint_context *context, struct profile *profile,
		  const struct endpoint_options *options, int takes_fd, struct endpoint **out,
		  struct err *err)
{
	const struct profile_config *const limits = profile->settings;
	const struct endpoint_socket socket = {takes_fd, options->address};
	struct endpoint *const endpoint = xcalloc(1, sizeof(*endpoint));

	endpoint->context = *context;
	endpoint->profile = profile_ref(profile);
	endpoint->tokens = options->tokens ? token_entry_ref(options->tokens) : NULL;
	endpoint->session = options->session ? xstrdup(options->session) : NULL;
	endpoint->label = options->label ? xstrdup(options->label) : NULL;
	endpoint->address = options->address;
	endpoint->admission.pin = options->pin;
	endpoint->admission.inside = options->inside;
	endpoint->lost = options->lost;
	endpoint->lost_ctx = options->lost_ctx;
	endpoint->admission.loopback = address_is_loopback(&options->address);
	rate_init(&endpoint->rate, limits->endpoint_rate, clock_boot_ms(context->timers->clock));
	list_init(&endpoint->unpinned);
	list_init(&endpoint->queue);
	list_init(&endpoint->pending);
	const struct refusal_source source = {
		.profile = profile->settings->name,
		.session = options->session,
		.label = options->label,
	};
	endpoint->refusals = refusal_log_new(context->timers, context->audit, &source);
	if (takes_fd >= 0 && add_listener(endpoint, &socket, err)) {
		endpoint_close(endpoint, NULL);
		return -1;
	}
	*out = endpoint;
	return 0;
}

int endpoint_attach(struct endpoint *endpoint, const struct endpoint_socket *takes_sockets,
		    size_t count, struct err *err)
{
	for (size_t i = 0; i < count; i++) {
		if (!add_listener(endpoint, &takes_sockets[i], err))
			continue;
		for (i++; i < count; i++)
			close(takes_sockets[i].fd);
		close_listeners(endpoint);
		return -1;
	}
	for (size_t i = 0; i < count; i++)
		http_listener_share(endpoint->listeners[i],
				    count > 1 ? endpoint->listeners[1 - i] : NULL);
	return 0;
}

void endpoint_close(struct endpoint *endpoint, struct endpoint_counts *last)
{
	if (!endpoint)
		return;
	close_listeners(endpoint);
	if (last)
		*last = endpoint->counts;
	timer_stop(endpoint->context.timers, &endpoint->queue_timer);
	trail_flush(endpoint);
	refusal_log_free(endpoint->refusals);
	secret_unref(endpoint->served);
	token_entry_unref(endpoint->tokens);
	profile_unref(endpoint->profile);
	free(endpoint->spare);
	free(endpoint->session);
	free(endpoint->label);
	free(endpoint);
}

void endpoint_set_profile(struct endpoint *endpoint, struct profile *profile)
{
	const struct profile_config *const limits = profile->settings;

	profile_ref(profile);
	profile_unref(endpoint->profile);
	endpoint->profile = profile;
	refusal_log_set_profile(endpoint->refusals, limits->name);
	for (size_t i = 0; i < endpoint->listener_count; i++)
		http_listener_set_max_connections(endpoint->listeners[i],
						  limits->endpoint_connections);
	if (endpoint->rate.per_second != limits->endpoint_rate)
		rate_init(&endpoint->rate, limits->endpoint_rate,
			  clock_boot_ms(endpoint->context.timers->clock));
}

void endpoint_set_audit(struct endpoint *endpoint, struct audit *audit)
{
	endpoint->context.audit = audit;
	refusal_log_set_audit(endpoint->refusals, audit);
}

void endpoint_pin(struct endpoint *endpoint, const struct address *addresses, size_t count)
{
	admission_pin(&endpoint->admission, addresses, count);
	endpoint_pinned(endpoint);
}

const struct admission *endpoint_admission(const struct endpoint *endpoint)
{
	return &endpoint->admission;
}

struct profile *endpoint_profile(const struct endpoint *endpoint)
{
	return endpoint->profile;
}

const struct address *endpoint_address(const struct endpoint *endpoint)
{
	return &endpoint->address;
}

void endpoint_counts(const struct endpoint *endpoint, struct endpoint_counts *counts)
{
	*counts = endpoint->counts;
}
