/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SIGHUP: everything that can fail is done beside what is served, then swapped in.
 */
#include "broker/broker.h"

#include "broker/attach.h"
#include "broker/audit.h"
#include "broker/base/clock.h"
#include "broker/base/err.h"
#include "broker/base/log.h"
#include "broker/config.h"
#include "broker/credential/credential.h"
#include "broker/endpoint.h"
#include "broker/minter.h"
#include "broker/net/http_client.h"
#include "broker/net/loop.h"
#include "broker/process.h"
#include "broker/session.h"
#include "broker/token_cache.h"

#include <string.h>

/* What a reload has made so far. */
struct next {
	struct config *config;
	struct credential *credential;
	struct audit *audit;
	struct service service;
};

static void drop(struct next *next, const struct service *current)
{
	service_drop(&next->service, current);
	audit_free(next->audit);
	credential_free(next->credential);
	config_unref(next->config);
}

static int build(struct broker *broker, struct next *next, struct err *err)
{
	if (options_to_config(&broker->options, &next->config, err))
		return -1;
	const struct broker_config *const settings = &next->config->broker;
	if (process_raise_descriptors(settings->max_sessions, err) ||
	    broker_check_ca_file(next->config, err) ||
	    broker_open_credential(broker, next->config, &next->credential, err) ||
	    audit_open(broker_audit_place(next->config), settings->audit_required, clock_system(),
		       &next->audit, err))
		return -1;
	return service_build(broker, next->config, &broker->service, &next->service, err);
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static void swap_audit(struct broker *broker, struct audit *takes_next)
{
	audit_free(broker->audit);
	broker->audit = takes_next;
	minter_set_audit(broker->minter, takes_next);
	attach_set_audit(broker->attach, takes_next);
	for (size_t i = 0; i < broker->service.endpoint_count; i++)
		endpoint_set_audit(broker->service.endpoints[i], takes_next);
}

static void swap(struct broker *broker, struct next *next)
{
	const struct config *const config = next->config;
	const struct config *const old = broker->service.config;
	const bool billed_elsewhere =
		!same_text(config->source.quota_project, old->source.quota_project);

	if (!same_text(config->broker.control_socket, old->broker.control_socket))
		log_warning("control_socket: changed, which takes a restart; the old one stays");
	log_init(config->broker.log_level, broker->environment.journal_stream != NULL);
	http_client_set_ca_file(broker->client, config->endpoints.ca_file);
	service_swap(&broker->service, &next->service);
	swap_audit(broker, next->audit);
	sessions_recheck(broker->sessions);
	broker_set_source(broker, next->credential);
	/* What Google refused for the sake of that project it may allow now. */
	if (billed_elsewhere)
		token_cache_source_changed(broker->cache);
	config_unref(next->config);
}

int broker_reload(struct broker *broker, struct err *err)
{
	struct next next = {0};

	if (build(broker, &next, err)) {
		drop(&next, &broker->service);
		return -1;
	}
	swap(broker, &next);
	return 0;
}
