/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/status.h"

#include "broker/attach.h"
#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/base/clock.h"
#include "broker/broker.h"
#include "broker/config.h"
#include "broker/credential/credential.h"
#include "broker/endpoint.h"
#include "broker/google/rfc3339.h"
#include "broker/minter.h"
#include "broker/profile.h"
#include "broker/session.h"
#include "broker/token_cache.h"

#include <inttypes.h>

static json_t *time_or_null(int64_t wall_ms)
{
	char text[RFC3339_SIZE];

	if (wall_ms <= 0)
		return json_null();
	rfc3339_format(text, wall_ms);
	return json_string(text);
}

static json_t *listen_of(const struct broker *broker, const struct profile *profile)
{
	char text[ADDRESS_TEXT_SIZE];

	for (size_t i = 0; i < broker->service.endpoint_count; i++) {
		const struct endpoint *const endpoint = broker->service.endpoints[i];
		if (endpoint_profile(endpoint) == profile)
			return json_string(address_format(endpoint_address(endpoint), text));
	}
	return json_null();
}

static json_t *token_json(const struct token_info *info)
{
	if (info->expires_wall_ms <= 0)
		return json_null();
	return json_pack("{s:s,s:o,s:o}", "state", info->state, "expires_at",
			 time_or_null(info->expires_wall_ms), "refresh_at",
			 time_or_null(info->refresh_wall_ms));
}

static json_t *failure_json(const struct token_info *info)
{
	if (!info->failed)
		return json_null();
	return json_pack("{s:s,s:s,s:o}", "ref", info->failure_ref, "class",
			 failure_class_name(info->failure->class), "at",
			 time_or_null(info->failure_wall_ms));
}

static json_t *profile_json(const struct broker *broker, const struct profile *profile)
{
	const struct profile_config *const settings = profile->settings;
	struct token_info info;

	token_entry_info(profile->tokens, settings->refresh_margin_s, &info);
	return json_pack("{s:s,s:s,s:s,s:s,s:s,s:o,s:o,s:o,s:I}", "name", settings->name, "backend",
			 settings->backend, "service_account", settings->service_account, "project",
			 settings->project, "location", settings->location, "listen",
			 listen_of(broker, profile), "token", token_json(&info), "last_failure",
			 failure_json(&info), "sessions",
			 (json_int_t)sessions_count_of(broker->sessions, settings->name));
}

static json_t *source_json(const struct broker *broker)
{
	struct credential_info info;

	credential_info(broker->credential, &info);
	return json_pack("{s:s,s:s,s:s,s:o}", "type", info.type, "principal", info.principal,
			 "state", credential_is_offline(broker->credential) ? "offline" : "ok",
			 "expires_at", time_or_null(info.token_expires_wall_ms));
}

static void add(struct counters *sum, const struct counters *counters)
{
	sum->requests_total += counters->requests_total;
	sum->refused_total += counters->refused_total;
	sum->tokens += counters->tokens;
	sum->mints += counters->mints;
	sum->mint_failures += counters->mint_failures;
}

static json_t *counters_json(const struct broker *broker)
{
	struct counters sum = {0};

	list_for_each(link, &broker->counters)
		add(&sum, &CONTAINER_OF(link, struct named_counters, link)->counters);
	return json_pack("{s:I,s:I,s:I,s:I,s:I}", "requests", (json_int_t)sum.requests_total,
			 "tokens", (json_int_t)sum.tokens, "mints", (json_int_t)sum.mints,
			 "mint_failures", (json_int_t)sum.mint_failures, "refused",
			 (json_int_t)sum.refused_total);
}

json_t *status_json(const struct broker *broker)
{
	json_t *const profiles = json_array();

	for (size_t i = 0; i < broker->service.profile_count; i++)
		(void)json_array_append_new(profiles,
					    profile_json(broker, broker->service.profiles[i]));
	json_t *const status =
		json_pack("{s:s,s:i,s:o,s:o,s:o,s:{s:I,s:I},s:o}", "version", POSTERN_VERSION,
			  "pid", (int)getpid(), "started_at", time_or_null(broker->started_wall_ms),
			  "source", source_json(broker), "profiles", profiles, "sessions", "open",
			  (json_int_t)sessions_count(broker->sessions), "limit",
			  (json_int_t)broker->service.config->broker.max_sessions, "counters",
			  counters_json(broker));
	if (!status)
		abort();
	return status;
}

static void head(struct buf *out, const char *name, const char *type, const char *help)
{
	buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void requests_metric(const struct broker *broker, struct buf *out)
{
	head(out, "postern_requests_total", "counter", "Requests answered on endpoints.");
	list_for_each(link, &broker->counters) {
		const struct named_counters *const named =
			CONTAINER_OF(link, struct named_counters, link);
		const struct labelled_counter *c = named->counters.requests;
		for (; c < named->counters.requests + COUNTERS_MAX_LABELS && c->label; c++)
			buf_addf(out,
				 "postern_requests_total{profile=\"%s\",route=\"%s\",code=\"%u\"} "
				 "%" PRIu64 "\n",
				 named->name, c->label, c->code, c->count);
	}
}

static void refused_metric(const struct broker *broker, struct buf *out)
{
	head(out, "postern_refused_total", "counter", "Requests and connections refused.");
	list_for_each(link, &broker->counters) {
		const struct named_counters *const named =
			CONTAINER_OF(link, struct named_counters, link);
		const struct labelled_counter *c = named->counters.refused;
		for (; c < named->counters.refused + COUNTERS_MAX_LABELS && c->label; c++)
			buf_addf(out,
				 "postern_refused_total{profile=\"%s\",reason=\"%s\"} %" PRIu64
				 "\n",
				 named->name, c->label, c->count);
	}
}

static void token_metrics(const struct broker *broker, struct buf *out)
{
	head(out, "postern_tokens_served_total", "counter", "Answers that held a token.");
	list_for_each(link, &broker->counters) {
		const struct named_counters *const named =
			CONTAINER_OF(link, struct named_counters, link);
		buf_addf(out, "postern_tokens_served_total{profile=\"%s\"} %" PRIu64 "\n",
			 named->name, named->counters.tokens);
	}
	head(out, "postern_mints_total", "counter", "Mints that ended, by result.");
	list_for_each(again, &broker->counters) {
		const struct named_counters *const named =
			CONTAINER_OF(again, struct named_counters, link);
		buf_addf(out,
			 "postern_mints_total{profile=\"%s\",result=\"ok\"} %" PRIu64 "\n"
			 "postern_mints_total{profile=\"%s\",result=\"failed\"} %" PRIu64 "\n",
			 named->name, named->counters.mints - named->counters.mint_failures,
			 named->name, named->counters.mint_failures);
	}
}

static void mint_time_metric(const struct broker *broker, struct buf *out)
{
	const struct minter_stats *const stats = minter_stats(broker->minter);
	uint64_t sum = 0;

	head(out, "postern_mint_seconds", "histogram", "Time from the start of a mint to its end.");
	for (size_t i = 0; i < MINTER_BUCKETS; i++) {
		sum += stats->buckets[i];
		buf_addf(out, "postern_mint_seconds_bucket{le=\"%g\"} %" PRIu64 "\n",
			 (double)minter_bucket_ms[i] / 1000, sum);
	}
	buf_addf(out,
		 "postern_mint_seconds_bucket{le=\"+Inf\"} %" PRIu64 "\n"
		 "postern_mint_seconds_sum %.3f\npostern_mint_seconds_count %" PRIu64 "\n",
		 stats->count, (double)stats->total_ms / 1000, stats->count);
}

static void expiry_metric(const struct broker *broker, struct buf *out)
{
	const int64_t now_ms = clock_wall_ms(clock_system());

	head(out, "postern_token_expiry_seconds", "gauge", "What is left of the token held.");
	for (size_t i = 0; i < broker->service.profile_count; i++) {
		const struct profile *const profile = broker->service.profiles[i];
		struct token_info info;
		token_entry_info(profile->tokens, profile->settings->refresh_margin_s, &info);
		if (info.expires_wall_ms > 0)
			buf_addf(out, "postern_token_expiry_seconds{profile=\"%s\"} %" PRId64 "\n",
				 profile->settings->name, (info.expires_wall_ms - now_ms) / 1000);
	}
}

void status_metrics(const struct broker *broker, struct buf *out)
{
	requests_metric(broker, out);
	token_metrics(broker, out);
	mint_time_metric(broker, out);
	head(out, "postern_sessions", "gauge", "Sessions open.");
	buf_addf(out, "postern_sessions %zu\n", sessions_count(broker->sessions));
	head(out, "postern_doors", "gauge", "Sessions whose door is attached.");
	buf_addf(out, "postern_doors %zu\n", attach_doors(broker->attach));
	head(out, "postern_attach_refused_total", "counter",
	     "Connections to the attach socket refused.");
	buf_addf(out, "postern_attach_refused_total %" PRIu64 "\n", attach_refused(broker->attach));
	expiry_metric(broker, out);
	refused_metric(broker, out);
	head(out, "postern_build_info", "gauge", "The version that runs.");
	buf_addf(out, "postern_build_info{version=\"%s\"} 1\n", POSTERN_VERSION);
}
