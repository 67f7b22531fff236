/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/config_keys.h"

#include "broker/config.h"
#include "broker/config_values.h"

#include <string.h>

#define EXPECT_BOOL "must be yes or no"
#define EXPECT_PATH "must be an absolute path"
#define EXPECT_EMAIL                                                                           \
	"must be an e-mail address such as NAME@PROJECT.iam.gserviceaccount.com, of letters, " \
	"digits and .-_+ around one @"
#define EXPECT_URL "must be https://HOST or https://HOST:PORT and nothing else"
#define EXPECT_PROJECT "must be a project id of a-z, 0-9, \".\", \":\" and \"-\", at most 63"
#define EXPECT_GROUP "must be a group's name"
#define EXPECT_LOCATION \
	"must be a location of a-z, 0-9 and \"-\", at most 63, such as global or europe-west4"
#define EXPECT_SCOPES \
	"must be a comma-separated list of https:// URLs without blanks, quotes and backslashes"
#define EXPECT_LISTEN                                                                        \
	"must be ADDRESS:PORT such as 127.0.0.1:8174 or [::1]:8174, with an IP address and " \
	"a port from 0 to 65535"
#define EXPECT_PEERS                                                                         \
	"must be auto or a comma-separated list of networks such as 172.17.0.0/16, with no " \
	"bit set behind the prefix"
#define EXPECT_RATE "must be a number from 0 to 1000000, 0 for no limit"
#define EXPECT_CONNECTIONS "must be a number from 1 to 2048"
#define EXPECT_HOST "must be a host name or an IPv4 address"

/* An entry of a table: a key, its field in OWNER, its type and the rest of struct config_key. */
#define KEY_AS(key, field, kind, ...) \
	{.name = #key, .type = &config_type_##kind, .offset = offsetof(OWNER, field), __VA_ARGS__}
#define KEY(key, kind, ...) KEY_AS(key, key, kind, __VA_ARGS__)

#define HOUR_S ((int64_t)3600)
#define DAY_S (24 * HOUR_S)

#define OWNER struct broker_config
static const struct config_key broker_keys[] = {
	/* 107: sun_path of unix(7) */
	KEY(control_socket, path, .expect = "must be an absolute path of at most 107 bytes",
	    .max = 107),
	KEY(control_group, group, .fallback = "postern", .expect = EXPECT_GROUP),
	KEY(audit_log, audit_log, .expect = "must be an absolute path, stderr or off"),
	KEY(audit_required, yes_no, .fallback = "no", .expect = EXPECT_BOOL),
	KEY(log_level, log_level, .fallback = "info",
	    .expect = "must be error, warning, info or debug"),
	KEY(max_sessions, unsigned, .fallback = "1024",
	    .expect = "must be a number from 1 to 65535", .min = 1, .max = 65535),
	KEY(max_sessions_per_user, unsigned, .fallback = "256",
	    .expect = "must be a number from 1 to 65535", .min = 1, .max = 65535),
	KEY(session_listen, session_listen, .fallback = "auto",
	    .expect = "must be auto or an IP address without a port"),
	KEY(allow_wildcard_listen, yes_no, .fallback = "no", .expect = EXPECT_BOOL),
	KEY(endpoint_rate, unsigned, .fallback = "200", .expect = EXPECT_RATE, .max = 1000000),
	KEY(endpoint_connections, unsigned, .fallback = "64", .expect = EXPECT_CONNECTIONS,
	    .min = 1, .max = 2048),
};
#undef OWNER

#define OWNER struct source_config
static const struct config_key source_keys[] = {
	KEY(type, source, .fallback = "adc",
	    .expect = "supported: adc, file, gcloud, metadata, offline"),
	KEY(file, path, .expect = EXPECT_PATH),
	KEY(quota_project, project, .expect = EXPECT_PROJECT),
	KEY(adc_metadata, yes_no, .fallback = "no", .expect = EXPECT_BOOL),
	KEY(gcloud, path, .expect = EXPECT_PATH),
	KEY(metadata_host, host_port, .fallback = "169.254.169.254",
	    .expect = "must be HOST or HOST:PORT"),
	KEY(subject_token_hosts, hosts, .expect = "must be a comma-separated list of host names"),
};
#undef OWNER

#define OWNER struct endpoints_config
static const struct config_key endpoints_keys[] = {
	KEY(universe_domain, host, .fallback = "googleapis.com",
	    .expect = "must be a domain name such as googleapis.com"),
	KEY(iamcredentials, url, .expect = EXPECT_URL),
	KEY(oauth2, url, .expect = EXPECT_URL),
	KEY(sts, url, .expect = EXPECT_URL),
	KEY(iam, url, .expect = EXPECT_URL),
	KEY(ca_file, path, .expect = EXPECT_PATH),
	KEY(allow_http_loopback, yes_no, .fallback = "no", .expect = EXPECT_BOOL),
};
#undef OWNER

#define OWNER struct profile_config
static const struct config_key profile_keys[] = {
	KEY(backend, backend, .fallback = "vertex", .expect = "must be vertex"),
	KEY(service_account, email, .required = true, .expect = EXPECT_EMAIL),
	KEY(project, project, .required = true, .expect = EXPECT_PROJECT),
	KEY(location, location, .fallback = "global", .expect = EXPECT_LOCATION),
	KEY(scopes, scopes, .fallback = "https://www.googleapis.com/auth/cloud-platform",
	    .expect = EXPECT_SCOPES),
	KEY_AS(lifetime, lifetime_s, duration, .fallback = "1h",
	       .expect = "must be a duration from 5m to 12h, such as 3600s, 60m or 1h", .min = 300,
	       .max = 12 * HOUR_S),
	KEY_AS(refresh_margin, refresh_margin_s, duration, .fallback = "5m",
	       .expect = "must be a duration from 1s to 12h, such as 300s or 5m", .min = 1,
	       .max = 12 * HOUR_S),
	KEY(delegates, emails,
	    .expect = "must be a comma-separated list of e-mail addresses of service accounts"),
	KEY(token_sharing, sharing, .fallback = "session", .expect = "must be session or profile"),
	KEY_AS(max_ttl, max_ttl_s, duration, .fallback = "12h",
	       .expect = "must be a duration from 1s to 720h, such as 90s, 30m or 12h", .min = 1,
	       .max = 30 * DAY_S),
	KEY(allow_groups, groups, .expect = "must be a comma-separated list of groups, or empty"),
	KEY(listen, listen, .expect = EXPECT_LISTEN),
	KEY(allow_peers, peers, .fallback = "auto", .expect = EXPECT_PEERS),
	KEY(advertise_host, host, .fallback = "host.docker.internal", .expect = EXPECT_HOST),
	KEY(project_number, number, .expect = "must be a number from 1 to 9223372036854775807"),
	KEY(endpoint_rate, unsigned, .expect = EXPECT_RATE, .max = 1000000),
	KEY(endpoint_connections, unsigned, .expect = EXPECT_CONNECTIONS, .min = 1, .max = 2048),
};
#undef OWNER

const struct config_section config_section_broker = {
	.name = "broker",
	.keys = broker_keys,
	.count = ARRAY_LEN(broker_keys),
};

const struct config_section config_section_source = {
	.name = "source",
	.keys = source_keys,
	.count = ARRAY_LEN(source_keys),
};

const struct config_section config_section_endpoints = {
	.name = "endpoints",
	.keys = endpoints_keys,
	.count = ARRAY_LEN(endpoints_keys),
};

const struct config_section config_section_profile = {
	.name = "profile",
	.keys = profile_keys,
	.count = ARRAY_LEN(profile_keys),
};

const struct config_key *config_key_find(const struct config_section *section, const char *name)
{
	for (size_t i = 0; i < section->count; i++)
		if (!strcmp(section->keys[i].name, name))
			return &section->keys[i];
	return NULL;
}
