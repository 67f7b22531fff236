/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/config_check.h"

#include "broker/base/alloc.h"
#include "broker/base/ini.h"
#include "broker/base/log.h"
#include "broker/config.h"
#include "broker/config_reader.h"
#include "broker/net/origin.h"

#include <inttypes.h>
#include <string.h>

static int check_source(const struct config_reader *reader, const struct source_config *source)
{
	const bool is_file = !strcmp(source->type, "file");

	if (is_file && !source->file)
		return config_refuse_key(reader, "source", "type",
					 reader->flag_of ? "names no file; must be file:PATH" :
							   "needs file = PATH beside it");
	if (!is_file && source->file)
		return config_refuse_key(reader, "source", "file",
					 "goes with type = file only, here it is %s; change the "
					 "type or remove the file",
					 source->type);
	if (source->gcloud && strcmp(source->type, "gcloud") != 0)
		return config_refuse_key(reader, "source", "gcloud",
					 "goes with type = gcloud only, here it is %s; remove it",
					 source->type);
	if (source->adc_metadata && strcmp(source->type, "adc") != 0)
		return config_refuse_key(reader, "source", "adc_metadata",
					 "goes with type = adc only, here it is %s; remove it",
					 source->type);
	return 0;
}

static int check_endpoints(const struct config_reader *reader,
			   const struct endpoints_config *endpoints)
{
	const struct {
		const char *key;
		const char *url;
	} urls[] = {
		{"iamcredentials", endpoints->iamcredentials},
		{"oauth2", endpoints->oauth2},
		{"sts", endpoints->sts},
		{"iam", endpoints->iam},
	};

	for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
		if (!origin_is_plain(urls[i].url))
			continue;
		if (!origin_is_loopback(urls[i].url))
			return config_refuse_key(reader, "endpoints", urls[i].key,
						 "plain http to another host; must be https");
		if (!endpoints->allow_http_loopback)
			return config_refuse_key(reader, "endpoints", urls[i].key,
						 "plain http; must be https, or set "
						 "allow_http_loopback = yes");
	}
	return 0;
}

static int check_wildcard(const struct config_reader *reader, const struct config *config,
			  const char *section, const char *key)
{
	return config->broker.allow_wildcard_listen ?
		       0 :
		       config_refuse_key(reader, section, key,
					 "listens on every network of the host; name one "
					 "address, or %s",
					 reader->flag_of ?
						 "give --allow-wildcard-listen" :
						 "set allow_wildcard_listen = yes in [broker]");
}

static int check_broker(const struct config_reader *reader, const struct config *config)
{
	const struct broker_config *const broker = &config->broker;

	if (broker->audit_required && broker->audit_log && !strcmp(broker->audit_log, "off"))
		return config_refuse_key(reader, "broker", "audit_required",
					 "the audit_log is off, so no token could be given; set "
					 "audit_log to a path or stderr");
	if (address_is_wildcard(&broker->session_listen))
		return check_wildcard(reader, config, "broker", "session_listen");
	return 0;
}

static bool same_endpoint(const struct address *a, const struct address *b)
{
	return address_same_ip(a, b) && address_port(a) == address_port(b) && address_port(a) != 0;
}

static int check_listen(const struct config_reader *reader, const struct config *config,
			const struct profile_config *profile, const char *section)
{
	if (address_is_wildcard(&profile->listen) &&
	    check_wildcard(reader, config, section, "listen"))
		return -1;
	for (const struct profile_config *other = config->profiles; other < profile; other++)
		if (same_endpoint(&other->listen, &profile->listen))
			return config_refuse_key(reader, section, "listen",
						 "is the listen of [profile %s] too; give each "
						 "its own",
						 other->name);
	return 0;
}

/* What listens on port 0 is seen when the source is asked. */
static int check_metadata_host(const struct config_reader *reader, const struct config *config)
{
	const struct source_config *const source = &config->source;
	struct address asked[2];

	if (strcmp(source->type, "metadata") != 0 && !source->adc_metadata)
		return 0;
	const size_t count = host_port_addresses(source->metadata_host, 80, asked);
	for (size_t i = 0; i < config->profile_count; i++)
		for (size_t k = 0; k < count; k++)
			if (same_endpoint(&config->profiles[i].listen, &asked[k]))
				return config_refuse_key(
					reader, "source", "metadata_host",
					"is the listen of [profile %s]; name the machine's own "
					"metadata server",
					config->profiles[i].name);
	return 0;
}

static void shrink_margin(const struct config_reader *reader, struct profile_config *profile,
			  const char *section)
{
	const struct ini_entry *entry = config_written(reader, section, "lifetime");
	struct config_place place;
	struct quoted q;

	if (profile->lifetime_s >= 3 * profile->refresh_margin_s)
		return;
	if (!entry)
		entry = config_written(reader, section, "refresh_margin");
	const int64_t margin_s = profile->lifetime_s / 3;
	log_warning("%s %s: refresh_margin of %" PRId64 " s shrunk to %" PRId64
		    " s, a third of the lifetime",
		    config_place(reader, ini_find_section(reader->ini, section), entry, &place),
		    quote_str(&q, entry->value), profile->refresh_margin_s, margin_s);
	profile->refresh_margin_s = margin_s;
}

int config_check(const struct config_reader *reader, struct config *config)
{
	if (check_broker(reader, config) || check_source(reader, &config->source) ||
	    check_endpoints(reader, &config->endpoints) || check_metadata_host(reader, config))
		return -1;
	for (size_t i = 0; i < config->profile_count; i++) {
		struct profile_config *const profile = &config->profiles[i];
		AUTO_FREE char *section = xasprintf("profile %s", profile->name);
		if (check_listen(reader, config, profile, section))
			return -1;
		shrink_margin(reader, profile, section);
	}
	return 0;
}
