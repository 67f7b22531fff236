/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an endpoint leaves behind: counts, refusals, and the tokens it gave.
 */
#include "broker/endpoint_impl.h"

#include "broker/audit.h"
#include "broker/base/secret.h"
#include "broker/profile.h"

/* How often changed counts reach the audit trail. */
#define COUNTS_MS 60000

static void add_names(const struct endpoint *endpoint, const struct profile *profile, json_t *event)
{
	audit_add(event, "session", endpoint->session);
	audit_add(event, "profile", profile->settings->name);
	audit_add(event, "label", endpoint->label);
}

static void on_counts(struct timer *timer)
{
	const struct endpoint *const endpoint = CONTAINER_OF(timer, struct endpoint, counts_timer);
	json_t *const event = audit_event(endpoint->context.audit, "session.counts");

	add_names(endpoint, endpoint->profile, event);
	audit_add_int(event, "requests", (int64_t)endpoint->counts.requests);
	audit_add_int(event, "tokens", (int64_t)endpoint->counts.tokens);
	audit_add_int(event, "refused", (int64_t)endpoint->counts.refused);
	(void)audit_write(endpoint->context.audit, event);
}

void trail_flush(struct endpoint *endpoint)
{
	if (!timer_is_set(&endpoint->counts_timer))
		return;
	timer_stop(endpoint->context.timers, &endpoint->counts_timer);
	/* A session's last counts are in its session.close. */
	if (!endpoint->session)
		on_counts(&endpoint->counts_timer);
}

void trail_count(struct endpoint *endpoint, struct profile *profile, const char *route,
		 unsigned status)
{
	counters_request(profile->counters, route, status);
	endpoint->counts.requests++;
	if (!timer_is_set(&endpoint->counts_timer))
		timer_set_after(endpoint->context.timers, &endpoint->counts_timer, COUNTS_MS,
				on_counts);
}

void trail_refusal(struct endpoint *endpoint, struct profile *profile,
		   const struct refusal *refusal, const struct address *peer)
{
	char text[ADDRESS_TEXT_SIZE];

	endpoint->counts.refused++;
	counters_refused(profile->counters, refusal->reason);
	/* One that waited may be of the profile that the endpoint had before. */
	refusal_log_set_profile(endpoint->refusals, profile->settings->name);
	refusal_log_note(endpoint->refusals, refusal, address_format_ip(peer, text));
}

int trail_serve(struct endpoint *endpoint, const struct profile *profile,
		const struct address *peer, const struct token_answer *answer)
{
	char text[ADDRESS_TEXT_SIZE];

	if (endpoint->served == answer->token)
		return 0;
	json_t *const event = audit_event(endpoint->context.audit, "token.serve");
	add_names(endpoint, profile, event);
	audit_add(event, "peer", address_format_ip(peer, text));
	audit_add(event, "account", profile->settings->service_account);
	audit_add(event, "route", "token");
	audit_add_int(event, "status", 200);
	audit_add(event, "token", secret_fingerprint(answer->token));
	audit_add_int(event, "expires_in", answer->expires_in_s);
	if (audit_write(endpoint->context.audit, event))
		return -1;
	secret_unref(endpoint->served);
	endpoint->served = secret_ref(answer->token);
	return 0;
}
