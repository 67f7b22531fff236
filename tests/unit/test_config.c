/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration: every default, the page's sample, and every input that must be refused. */
#include "broker/config.h"

#include "broker/base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define FILE_NAME "postern.conf"
#define PROFILE "[profile p]\n" REQUIRED
#define REQUIRED "service_account = a@p.iam.gserviceaccount.com\nproject = my-project\n"

static struct config *parse_good(const char *text)
{
	struct config *config = NULL;
	struct err err = {0};

	if (config_parse(FILE_NAME, text, strlen(text), &config, &err))
		fail_msg("%s", err.text);
	return config;
}

static void assert_refused(const char *text, const char *const needles[static 4])
{
	struct config *config = NULL;
	struct err err = {0};

	if (!config_parse(FILE_NAME, text, strlen(text), &config, &err))
		fail_msg("accepted: %s", text);
	assert_null(config);
	assert_int_not_equal(err.code, ERR_NONE);
	assert_null(strchr(err.text, '\n'));
	if (strncmp(err.text, needles[0], strlen(needles[0])) != 0)
		fail_msg("\"%s\" does not begin with \"%s\"", err.text, needles[0]);
	for (size_t i = 1; i < 4 && needles[i]; i++)
		if (!strstr(err.text, needles[i]))
			fail_msg("\"%s\" does not say \"%s\"", err.text, needles[i]);
}

static void assert_address(const struct address *address, const char *text)
{
	char formatted[ADDRESS_TEXT_SIZE];

	assert_string_equal(address_format(address, formatted), text);
}

/* Section 3 of the contract, the keys that stand in a comment there included. */
static const char sample[] =
	"[broker]\n"
	"control_socket = /run/postern/control.sock\n"
	"control_group = postern\n"
	"# a path, \"stderr\" or \"off\"\n"
	"audit_log = /var/log/postern/audit.jsonl\n"
	"# yes: no audit line, no token\n"
	"audit_required = no\n"
	"log_level = info\n"
	"max_sessions = 1024\n"
	"max_sessions_per_user = 256\n"
	"session_listen = auto\n"
	"allow_wildcard_listen = no\n"
	"endpoint_rate = 200\n"
	"endpoint_connections = 64\n"
	"\n"
	"[source]\n"
	"type = file\n"
	"file = /etc/postern/source.json\n"
	"quota_project = my-billing-project\n"
	"adc_metadata = no\n"
	"metadata_host = 169.254.169.254\n"
	"subject_token_hosts = token.actions.example.com\n"
	"\n"
	"; Google's by default\n"
	"[endpoints]\n"
	"universe_domain = googleapis.com\n"
	"iamcredentials = https://iamcredentials.googleapis.com\n"
	"oauth2 = https://oauth2.googleapis.com\n"
	"sts = https://sts.googleapis.com\n"
	"iam = https://iam.googleapis.com\n"
	"ca_file = /etc/ssl/certs/ca-certificates.crt\n"
	"allow_http_loopback = no\n"
	"\n"
	"[profile vertex]\n"
	"backend = vertex\n"
	"service_account = agent@my-project.iam.gserviceaccount.com\n"
	"project = my-project\n"
	"location = global\n"
	"scopes = https://www.googleapis.com/auth/cloud-platform\n"
	"lifetime = 1h\n"
	"refresh_margin = 5m\n"
	"delegates = first@p.iam.gserviceaccount.com, second@p.iam.gserviceaccount.com\n"
	"token_sharing = session\n"
	"max_ttl = 12h\n"
	"allow_groups = bench\n"
	"listen = 172.17.0.1:8174\n"
	"allow_peers = auto\n"
	"advertise_host = host.docker.internal\n"
	"project_number = 123456789012\n";

static void the_sample_of_the_page_is_read_whole(void **state)
{
	(void)state;
	AUTO_CONFIG struct config *config = parse_good(sample);
	const struct profile_config *const profile = config_find_profile(config, "vertex");

	assert_string_equal(config->path, FILE_NAME);
	assert_string_equal(config->broker.control_socket, "/run/postern/control.sock");
	assert_true(config->broker.control_group_written);
	assert_string_equal(config->broker.audit_log, "/var/log/postern/audit.jsonl");
	assert_string_equal(config->source.type, "file");
	assert_string_equal(config->source.file, "/etc/postern/source.json");
	assert_string_equal(config->source.quota_project, "my-billing-project");
	assert_true(
		strv_contains(&config->source.subject_token_hosts, "token.actions.example.com"));
	assert_string_equal(config->endpoints.ca_file, "/etc/ssl/certs/ca-certificates.crt");
	assert_int_equal(config->profile_count, 1);
	assert_ptr_equal(profile, &config->profiles[0]);
	assert_string_equal(profile->service_account, "agent@my-project.iam.gserviceaccount.com");
	assert_int_equal(profile->delegates.count, 2);
	assert_string_equal(profile->delegates.items[0], "first@p.iam.gserviceaccount.com");
	assert_string_equal(profile->delegates.items[1], "second@p.iam.gserviceaccount.com");
	assert_true(strv_contains(&profile->allow_groups, "bench"));
	assert_address(&profile->listen, "172.17.0.1:8174");
	assert_string_equal(profile->project_number, "123456789012");
}

static void what_is_not_written_has_the_default_of_the_page(void **state)
{
	(void)state;
	AUTO_CONFIG struct config *config = parse_good(PROFILE);
	const struct broker_config *const broker = &config->broker;

	assert_null(broker->control_socket);
	assert_string_equal(broker->control_group, "postern");
	assert_false(broker->control_group_written);
	assert_null(broker->audit_log);
	assert_false(broker->audit_required);
	assert_int_equal(broker->log_level, LOG_LEVEL_INFO);
	assert_int_equal(broker->max_sessions, 1024);
	assert_int_equal(broker->max_sessions_per_user, 256);
	assert_false(address_is_set(&broker->session_listen));
	assert_false(broker->allow_wildcard_listen);
	assert_int_equal(broker->endpoint_rate, 200);
	assert_int_equal(broker->endpoint_connections, 64);

	assert_string_equal(config->source.type, "adc");
	assert_null(config->source.file);
	assert_null(config->source.quota_project);
	assert_false(config->source.adc_metadata);
	assert_null(config->source.gcloud);
	assert_string_equal(config->source.metadata_host, "169.254.169.254");
	assert_int_equal(config->source.subject_token_hosts.count, 0);

	assert_string_equal(config->endpoints.universe_domain, "googleapis.com");
	assert_string_equal(config->endpoints.iamcredentials,
			    "https://iamcredentials.googleapis.com");
	assert_string_equal(config->endpoints.oauth2, "https://oauth2.googleapis.com");
	assert_string_equal(config->endpoints.sts, "https://sts.googleapis.com");
	assert_string_equal(config->endpoints.iam, "https://iam.googleapis.com");
	assert_null(config->endpoints.ca_file);
	assert_false(config->endpoints.allow_http_loopback);
}

static void a_profile_has_the_defaults_of_the_page(void **state)
{
	(void)state;
	AUTO_CONFIG struct config *config = parse_good(PROFILE);
	const struct profile_config *const profile = &config->profiles[0];

	assert_string_equal(profile->name, "p");
	assert_string_equal(profile->backend, "vertex");
	assert_string_equal(profile->location, "global");
	assert_int_equal(profile->scopes.count, 1);
	assert_string_equal(profile->scopes.items[0],
			    "https://www.googleapis.com/auth/cloud-platform");
	assert_int_equal(profile->lifetime_s, 3600);
	assert_int_equal(profile->refresh_margin_s, 300);
	assert_int_equal(profile->delegates.count, 0);
	assert_int_equal(profile->token_sharing, TOKEN_SHARING_SESSION);
	assert_int_equal(profile->max_ttl_s, 12 * 3600);
	assert_int_equal(profile->allow_groups.count, 0);
	assert_false(address_is_set(&profile->listen));
	assert_true(profile->allow_peers.automatic);
	assert_int_equal(profile->allow_peers.count, 0);
	assert_string_equal(profile->advertise_host, "host.docker.internal");
	assert_null(profile->project_number);
}

static void every_value_that_is_not_the_default_is_kept(void **state)
{
	(void)state;
	AUTO_CONFIG struct config *config = parse_good(
		"[broker]\naudit_log = stderr\naudit_required = yes\nlog_level = debug\n"
		"max_sessions = 2\nmax_sessions_per_user = 1\nsession_listen = ::1\n"
		"endpoint_rate = 0\nendpoint_connections = 1200\n"
		"[source]\ntype = offline\nmetadata_host = [::1]:8080\n"
		"[endpoints]\nallow_http_loopback = yes\nuniverse_domain = example.test\n"
		"oauth2 = http://127.0.0.1:8080/\nsts = http://[::1]:1\niam = http://localhost\n" PROFILE
		"token_sharing = profile\nscopes = https://a.test/x,https://b.test/y\n"
		"lifetime = 12h\nrefresh_margin = 90s\nmax_ttl = 1s\nallow_groups =\n"
		"allow_peers = 10.0.0.0/8, ::1\n");
	const struct profile_config *const profile = &config->profiles[0];

	assert_string_equal(config->broker.audit_log, "stderr");
	assert_true(config->broker.audit_required);
	assert_int_equal(config->broker.log_level, LOG_LEVEL_DEBUG);
	assert_int_equal(config->broker.max_sessions, 2);
	assert_int_equal(config->broker.max_sessions_per_user, 1);
	assert_address(&config->broker.session_listen, "[::1]:0");
	assert_int_equal(config->broker.endpoint_rate, 0);
	assert_int_equal(config->broker.endpoint_connections, 1200);
	assert_string_equal(config->source.type, "offline");
	assert_string_equal(config->source.metadata_host, "[::1]:8080");
	assert_string_equal(config->endpoints.iamcredentials,
			    "https://iamcredentials.example.test");
	assert_string_equal(config->endpoints.oauth2, "http://127.0.0.1:8080");
	assert_string_equal(config->endpoints.sts, "http://[::1]:1");
	assert_int_equal(profile->token_sharing, TOKEN_SHARING_PROFILE);
	assert_int_equal(profile->scopes.count, 2);
	assert_int_equal(profile->lifetime_s, 12 * 3600);
	assert_int_equal(profile->refresh_margin_s, 90);
	assert_int_equal(profile->max_ttl_s, 1);
	assert_int_equal(profile->allow_groups.count, 0);
	assert_false(profile->allow_peers.automatic);
	assert_int_equal(profile->allow_peers.count, 2);
	assert_int_equal(profile->allow_peers.networks[0].bits, 8);
	assert_int_equal(profile->allow_peers.networks[1].bits, 128);
}

static void a_wildcard_is_taken_where_the_key_allows_it(void **state)
{
	(void)state;
	AUTO_CONFIG struct config *config =
		parse_good(PROFILE "listen = 0.0.0.0:8174\n"
				   "[broker]\nallow_wildcard_listen = yes\nsession_listen = ::\n");

	assert_address(&config->profiles[0].listen, "0.0.0.0:8174");
	assert_true(address_is_wildcard(&config->broker.session_listen));
}

static void profiles_may_share_an_address_where_the_port_is_0(void **state)
{
	(void)state;
	AUTO_CONFIG struct config *config = parse_good(
		PROFILE "listen = 127.0.0.1:0\n[profile q]\n" REQUIRED
			"listen = 127.0.0.1:0\n[profile r]\n" REQUIRED
			"listen = 127.0.0.1:80\n[profile s]\n" REQUIRED "listen = [::1]:80\n");

	assert_int_equal(config->profile_count, 4);
	assert_null(config_find_profile(config, "t"));
}

static void names_of_profiles_follow_the_rule(void **state)
{
	static const char *const good[] = {"a", "0", "a-b_c9", "abcdefghijabcdefghijabcdefghij12"};
	static const char *const bad[] = {"",	      "A",
					  "-a",	      "_a",
					  "a b",      "a.b",
					  " a",	      "a/b",
					  "\xc3\xa9", "abcdefghijabcdefghijabcdefghij123"};
	char text[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		(void)snprintf(text, sizeof(text), "[profile %s]\n" REQUIRED, good[i]);
		AUTO_CONFIG struct config *config = parse_good(text);
		assert_non_null(config_find_profile(config, good[i]));
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		(void)snprintf(text, sizeof(text), "\n[profile %s]\n" REQUIRED, bad[i]);
		assert_refused(text, (const char *const[4]){FILE_NAME ":2: ", "a-z, 0-9"});
	}
}

/* The warning goes to standard error; that is caught in a pipe here. */
static struct config *parse_and_catch(const char *text, char *caught, size_t size)
{
	int ends[2];
	const int saved = dup(STDERR_FILENO);

	if (saved < 0 || pipe(ends))
		abort();
	assert_int_not_equal(dup2(ends[1], STDERR_FILENO), -1);
	close(ends[1]);
	struct config *const config = parse_good(text);
	assert_int_not_equal(dup2(saved, STDERR_FILENO), -1);
	close(saved);
	const ssize_t n = read(ends[0], caught, size - 1);
	close(ends[0]);
	caught[n > 0 ? n : 0] = '\0';
	return config;
}

static void a_margin_above_a_third_of_the_lifetime_shrinks_with_a_warning(void **state)
{
	static const struct {
		const char *keys;
		int64_t margin_s;
		const char *warning;
	} cases[] = {
		{"lifetime = 10m\n", 200, FILE_NAME ":4: [profile p] lifetime \"10m\""},
		{"lifetime = 5m\nrefresh_margin = 101s\n", 100, FILE_NAME ":4: "},
		{"refresh_margin = 1201s\n", 1200, FILE_NAME ":4: [profile p] refresh_margin"},
		{"refresh_margin = 1200s\n", 1200, NULL},
		{"lifetime = 15m\n", 300, NULL},
		{"lifetime = 899s\n", 299, FILE_NAME ":4: "},
	};
	char text[256];
	char caught[1024];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		(void)snprintf(text, sizeof(text), PROFILE "%s", cases[i].keys);
		AUTO_CONFIG struct config *config = parse_and_catch(text, caught, sizeof(caught));
		assert_int_equal(config->profiles[0].refresh_margin_s, cases[i].margin_s);
		assert_int_equal(!caught[0], !cases[i].warning);
		if (cases[i].warning)
			assert_non_null(strstr(caught, cases[i].warning));
	}
}

static void a_file_that_is_no_ini_is_refused_with_its_line(void **state)
{
	static const struct {
		const char *text;
		const char *needles[4];
	} cases[] = {
		{"key = value\n", {FILE_NAME ":1: ", "\"key = value\"", "[section]"}},
		{"[broker]\nlog_level\n", {FILE_NAME ":2: ", "\"log_level\"", "key = value"}},
		{"[broker]\n = x\n", {FILE_NAME ":2: ", "indented", "column 1"}},
		{"[broker]\n=x\n", {FILE_NAME ":2: ", "key = value"}},
		{"[broker]\nlog_level = info\n  debug\n", {FILE_NAME ":3: ", "indented"}},
		{"[broker\n", {FILE_NAME ":1: ", "\"[broker\"", "]"}},
		{"[]\n", {FILE_NAME ":1: ", "no name"}},
		{"[broker]\nlog_level = info\r\n", {FILE_NAME ":2: ", "0x0d", "remove"}},
		{"[broker]\nlog_level = a\x01\n", {FILE_NAME ":2: ", "0x01", "remove"}},
		{"[broker]\n\n[source]\n[broker]\n", {FILE_NAME ":4: ", "\"[broker]\"", "line 1"}},
		{"[broker]\nlog_level = info\nlog_level = info\n",
		 {FILE_NAME ":3: ", "\"log_level\"", "line 2"}},
		{PROFILE PROFILE, {FILE_NAME ":4: ", "\"[profile p]\"", "line 1"}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_refused(cases[i].text, cases[i].needles);
}

static void an_over_long_line_is_refused_not_cut(void **state)
{
	char text[8192];

	(void)state;
	const int head = snprintf(text, sizeof(text), PROFILE "scopes = https://");
	memset(text + head, 'a', sizeof(text) - (size_t)head);
	text[sizeof(text) - 1] = '\0';
	assert_refused(text, (const char *const[4]){FILE_NAME ":4: ", "4096"});
}

static void unknown_names_are_refused_with_the_known_ones(void **state)
{
	static const struct {
		const char *text;
		const char *needles[4];
	} cases[] = {
		{"[brokr]\n" PROFILE,
		 {FILE_NAME ":1: ", "\"brokr\"",
		  "[broker], [source], [endpoints], [profile NAME]"}},
		{"[profiles x]\n", {FILE_NAME ":1: ", "\"profiles x\"", "[profile NAME]"}},
		{"[profile]\n", {FILE_NAME ":1: ", "\"profile\"", "[profile NAME]"}},
		{"[Broker]\n", {FILE_NAME ":1: ", "\"Broker\""}},
		{"[broker]\nloglevel = info\n",
		 {FILE_NAME ":2: ", "[broker]", "\"loglevel\"", "log_level"}},
		{"[source]\nbackend = vertex\n",
		 {FILE_NAME ":2: ", "\"backend\"", "type, file, quota_project"}},
		{"[endpoints]\niamcredential = x\n",
		 {FILE_NAME ":2: ", "\"iamcredential\"", "iamcredentials"}},
		{PROFILE "Lifetime = 1h\n",
		 {FILE_NAME ":4: ", "[profile p]", "\"Lifetime\"", "lifetime"}},
		{PROFILE "\xff = 1h\n", {FILE_NAME ":4: ", "\"\\xff\""}},
		{"", {FILE_NAME ": ", "[profile NAME]", "service_account", "project"}},
		{"# nothing\n[broker]\n", {FILE_NAME ": ", "no profile"}},
		{"\n[profile p]\nproject = p\n", {FILE_NAME ":2: ", "service_account", "e-mail"}},
		{"\n[profile p]\nservice_account = a@b.c\n", {FILE_NAME ":2: ", "project"}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_refused(cases[i].text, cases[i].needles);
}

/* A value that must be refused: on line 2 of its section alone, or on line 4 behind a profile. */
static const struct {
	const char *section; /* NULL: the profile */
	const char *key;
	const char *value;
	const char *repair;
} bad_values[] = {
	{"broker", "control_socket", "control.sock", "absolute path"},
	{"broker", "control_socket", "", "absolute path"},
	{"broker", "control_socket",
	 "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	 "aaaaaaaaaaaaaaaaaaa",
	 "at most 107 bytes"},
	{"broker", "control_socket", "/run/\xe9/control.sock", "not UTF-8; must be"},
	{"broker", "audit_log", "/var/log/\xff.jsonl", "not UTF-8; must be"},
	{"broker", "control_group", "", "group"},
	{"broker", "control_group", "a b", "group"},
	{"broker", "audit_log", "audit.jsonl", "absolute path, stderr or off"},
	{"broker", "audit_log", "/var/log/", "absolute path, stderr or off"},
	{"broker", "audit_log", "", "absolute path, stderr or off"},
	{"broker", "audit_required", "true", "yes or no"},
	{"broker", "audit_required", "Yes", "yes or no"},
	{"broker", "log_level", "notice", "error, warning, info or debug"},
	{"broker", "max_sessions", "0", "from 1 to 65535"},
	{"broker", "max_sessions", "-1", "from 1 to 65535"},
	{"broker", "max_sessions", "1k", "from 1 to 65535"},
	{"broker", "max_sessions", "99999999999999999999999", "from 1 to 65535"},
	{"broker", "max_sessions_per_user", "65536", "from 1 to 65535"},
	{"broker", "session_listen", "docker0", "auto or an IP address"},
	{"broker", "session_listen", "172.17.0.1:80", "without a port"},
	{"broker", "session_listen", "0.0.0.0", "allow_wildcard_listen = yes"},
	{"broker", "allow_wildcard_listen", "maybe", "yes or no"},
	{"broker", "endpoint_rate", "fast", "from 0 to 1000000"},
	{"broker", "endpoint_connections", "2049", "from 1 to 2048"},
	{"broker", "endpoint_connections", "0", "from 1 to 2048"},
	{"source", "type", "vault", "supported: adc, file, gcloud, metadata, offline"},
	{"source", "type", "ADC", "supported: adc, file, gcloud, metadata, offline"},
	{"source", "type", "", "supported: adc, file, gcloud, metadata, offline"},
	{"source", "type", "file", "needs file = PATH"},
	{"source", "file", "/etc/postern/source.json", "type = file"},
	{"source", "file", "source.json", "absolute path"},
	{"source", "quota_project", "My Project", "project id"},
	{"source", "adc_metadata", "maybe", "yes or no"},
	{"source", "gcloud", "gcloud", "absolute path"},
	{"source", "gcloud", "/usr/bin/gcloud", "type = gcloud"},
	{"source", "metadata_host", "http://169.254.169.254", "HOST:PORT"},
	{"source", "metadata_host", "[::1", "HOST:PORT"},
	{"source", "metadata_host", "[127.0.0.1]:80", "HOST:PORT"},
	{"source", "metadata_host", "a:0", "HOST:PORT"},
	{"source", "subject_token_hosts", "a.test,,b.test",
	 "empty item; must be a comma-separated"},
	{"source", "subject_token_hosts", "https://a.test", "host names"},
	{"endpoints", "universe_domain", "https://googleapis.com", "domain name"},
	{"endpoints", "universe_domain", "googleapis..com", "domain name"},
	{"endpoints", "universe_domain", "googleapis.com.", "domain name"},
	{"endpoints", "iamcredentials", "iamcredentials.googleapis.com", "https://HOST"},
	{"endpoints", "iamcredentials", "ftp://a.test", "https://HOST"},
	{"endpoints", "iamcredentials", "https://", "https://HOST"},
	{"endpoints", "iamcredentials", "https://a.test/v1", "holds a path; must be https://HOST"},
	{"endpoints", "iamcredentials", "https://a.test//", "holds a path"},
	{"endpoints", "oauth2", "https://me@a.test", "holds a user"},
	{"endpoints", "oauth2", "https://me:pw@a.test:1/", "holds a user"},
	{"endpoints", "oauth2", "https://a.test?x=1", "holds a query"},
	{"endpoints", "oauth2", "https://a.test/?x=1", "holds a query"},
	{"endpoints", "oauth2", "https://a.test#x", "holds a fragment"},
	{"endpoints", "sts", "https://a.test:0", "https://HOST:PORT"},
	{"endpoints", "sts", "https://a.test:65536", "https://HOST:PORT"},
	{"endpoints", "sts", "https://a.test:", "https://HOST:PORT"},
	{"endpoints", "sts", "https://a b.test", "https://HOST"},
	{"endpoints", "sts", "https://[::1]x", "https://HOST"},
	{"endpoints", "iam", "http://a.test", "must be https"},
	{"endpoints", "iam", "http://127.0.0.1:80", "allow_http_loopback = yes"},
	{"endpoints", "ca_file", "ca.pem", "absolute path"},
	{"endpoints", "allow_http_loopback", "1", "yes or no"},
	{NULL, "backend", "bedrock", "must be vertex"},
	{NULL, "location", "Global", "a-z, 0-9"},
	{NULL, "location", "europe/west4", "a-z, 0-9"},
	{NULL, "location", "", "a-z, 0-9"},
	{NULL, "scopes", "", "comma-separated list of https:// URLs"},
	{NULL, "scopes", "cloud-platform", "https:// URLs"},
	{NULL, "scopes", "http://www.googleapis.com/auth/cloud-platform", "https:// URLs"},
	{NULL, "scopes", "https://a.test/x https://b.test/y", "without blanks"},
	{NULL, "scopes", "https://a.test/\"", "quotes"},
	{NULL, "scopes", "https://a.test/'", "quotes"},
	{NULL, "scopes", "https://a.test/\\", "backslashes"},
	{NULL, "scopes", "https://a.test/\xc3\xa9", "https:// URLs"},
	{NULL, "scopes", "https://", "https:// URLs"},
	{NULL, "scopes", "https://a.test/x,openid", "not \"openid\"; must be"},
	{NULL, "lifetime", "5", "duration from 5m to 12h"},
	{NULL, "lifetime", "3600", "duration from 5m to 12h"},
	{NULL, "lifetime", "1d", "duration from 5m to 12h"},
	{NULL, "lifetime", "299s", "duration from 5m to 12h"},
	{NULL, "lifetime", "4m", "duration from 5m to 12h"},
	{NULL, "lifetime", "13h", "duration from 5m to 12h"},
	{NULL, "lifetime", "43201s", "duration from 5m to 12h"},
	{NULL, "lifetime", "1h # an hour", "a comment needs a line of its own; must be"},
	{NULL, "refresh_margin", "0s", "duration from 1s to 12h"},
	{NULL, "refresh_margin", "five", "duration from 1s to 12h"},
	{NULL, "delegates", "first", "e-mail addresses"},
	{NULL, "delegates", "a@p.test, b@", "not \"b@\"; must be"},
	{NULL, "token_sharing", "shared", "session or profile"},
	{NULL, "max_ttl", "0s", "duration from 1s to 720h"},
	{NULL, "max_ttl", "721h", "duration from 1s to 720h"},
	{NULL, "allow_groups", "bench,", "empty item"},
	{NULL, "allow_groups", "a:b", "groups"},
	{NULL, "listen", "8174", "ADDRESS:PORT"},
	{NULL, "listen", ":8174", "ADDRESS:PORT"},
	{NULL, "listen", "127.0.0.1", "ADDRESS:PORT"},
	{NULL, "listen", "localhost:8174", "IP address"},
	{NULL, "listen", "127.0.0.1:65536", "port from 0 to 65535"},
	{NULL, "listen", "::1:8174", "[::1]:8174"},
	{NULL, "listen", "0.0.0.0:8174", "allow_wildcard_listen = yes"},
	{NULL, "listen", "[::]:8174", "allow_wildcard_listen = yes"},
	{NULL, "listen", "[::ffff:0.0.0.0]:8174", "allow_wildcard_listen = yes"},
	{NULL, "allow_peers", "", "auto or a comma-separated list of networks"},
	{NULL, "allow_peers", "172.17.0.1/16", "no bit set behind the prefix"},
	{NULL, "allow_peers", "10.0.0.0/33", "networks"},
	{NULL, "allow_peers", "10.0.0.0/8, auto", "not \"auto\"; must be"},
	{NULL, "advertise_host", "host:80", "host name"},
	{NULL, "advertise_host", "-host", "host name"},
	{NULL, "advertise_host", "", "host name"},
	{NULL, "project_number", "12a", "number"},
	{NULL, "project_number", "-1", "number"},
	{NULL, "project_number", "0", "from 1"},
	{NULL, "project_number", "9223372036854775808", "to 9223372036854775807"},
	{NULL, "project_number", "123456789012345678901", "to 9223372036854775807"},
};

static void a_bad_value_is_refused_with_line_key_value_and_repair(void **state)
{
	char text[1024];
	char place[128];
	char quoted[512];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad_values); i++) {
		const char *const section = bad_values[i].section;
		const char *const key = bad_values[i].key;
		struct quoted q;
		if (section) {
			(void)snprintf(text, sizeof(text), "[%s]\n%s = %s\n" PROFILE, section, key,
				       bad_values[i].value);
			(void)snprintf(place, sizeof(place), FILE_NAME ":2: [%s] %s ", section,
				       key);
		} else {
			(void)snprintf(text, sizeof(text), PROFILE "%s = %s\n", key,
				       bad_values[i].value);
			(void)snprintf(place, sizeof(place), FILE_NAME ":4: [profile p] %s ", key);
		}
		(void)snprintf(quoted, sizeof(quoted),
			       "%.500s: ", quote_str(&q, bad_values[i].value));
		assert_refused(text, (const char *const[4]){place, quoted, bad_values[i].repair});
	}
}

static void a_service_account_that_is_no_email_is_refused_with_the_reason(void **state)
{
	static const char *const cases[][2] = {
		{"agent", "holds no \"@\""},
		{"", "e-mail"},
		{"a/b@p.iam.gserviceaccount.com", "holds \"/\""},
		{"a@p.test/../x", "holds \"/\""},
		{"a@p.test?x", "holds \"?\""},
		{"a@p.test#x", "holds \"#\""},
		{"a@p.test:generateAccessToken", "holds \":\""},
		{"a%40p.test", "holds \"%\""},
		{"a b@p.test", "holds \" \""},
		{"\"a\"@p.test", "holds \"\\\"\""},
		{"\xc3\xa9@p.test", "holds \"\\xc3\""},
		{"a@b@p.test", "one @"},
		{"@p.test", "e-mail"},
		{"a@", "e-mail"},
		{"a@p", "e-mail"},
		{"a@.test", "e-mail"},
		{"a@p.", "e-mail"},
		{"a@p..test", "e-mail"},
	};
	char text[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		(void)snprintf(text, sizeof(text),
			       "[profile p]\nproject = p\nservice_account = %s\n", cases[i][0]);
		assert_refused(text,
			       (const char *const[4]){FILE_NAME ":3: [profile p] service_account ",
						      cases[i][1], "must be an e-mail address"});
	}
	assert_refused("[profile p]\nproject = p\nservice_account = a\x7f@p.test\n",
		       (const char *const[4]){FILE_NAME ":3: ", "0x7f"});
}

#define SIXTY_FOUR "abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghij1234"

static void a_project_that_is_no_id_is_refused(void **state)
{
	static const char *const bad[] = {"",	 "My",	"a/b", "a b",	   "-a",      ".a",
					  "a?b", "a%b", "a_b", "\xc3\xa9", SIXTY_FOUR};
	char text[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		(void)snprintf(text, sizeof(text),
			       "[profile p]\nproject = %s\nservice_account = a@p.test\n", bad[i]);
		assert_refused(text, (const char *const[4]){FILE_NAME ":2: [profile p] project ",
							    "project id"});
	}
	AUTO_CONFIG struct config *config = parse_good(
		"[profile p]\nproject = example.com:my-p1\nservice_account = a@p.test\n");
	assert_string_equal(config->profiles[0].project, "example.com:my-p1");
}

static void keys_that_do_not_go_together_are_refused(void **state)
{
	static const struct {
		const char *text;
		const char *needles[4];
	} cases[] = {
		{PROFILE "listen = 127.0.0.1:80\n[profile q]\n" REQUIRED "listen = 127.0.0.1:80\n",
		 {FILE_NAME ":8: [profile q] listen", "[profile p]", "its own"}},
		{PROFILE "listen = [::ffff:127.0.0.1]:80\n[profile q]\n" REQUIRED
			 "listen = 127.0.0.1:80\n",
		 {FILE_NAME ":8: [profile q] listen", "[profile p]"}},
		{PROFILE "[broker]\naudit_required = yes\naudit_log = off\n",
		 {FILE_NAME ":5: [broker] audit_required \"yes\"", "audit_log"}},
		{"[source]\nfile = /x\ntype = offline\n" PROFILE,
		 {FILE_NAME ":2: [source] file \"/x\"", "type = file", "offline"}},
		{"[source]\nadc_metadata = yes\ntype = offline\n" PROFILE,
		 {FILE_NAME ":2: [source] adc_metadata \"yes\"", "type = adc", "offline"}},
		{"[source]\ntype = metadata\nmetadata_host = localhost:80\n" PROFILE
		 "listen = 127.0.0.1:80\n",
		 {FILE_NAME ":3: [source] metadata_host \"localhost:80\"", "[profile p]",
		  "metadata server"}},
		{"[source]\nadc_metadata = yes\nmetadata_host = [::1]\n" PROFILE
		 "listen = [::1]:80\n",
		 {FILE_NAME ":3: [source] metadata_host \"[::1]\"", "[profile p]"}},
		{"[endpoints]\nsts = http://10.0.0.1\nallow_http_loopback = yes\n" PROFILE,
		 {FILE_NAME ":2: [endpoints] sts ", "must be https"}},
		{"[endpoints]\nsts = http://localhost.test\nallow_http_loopback = yes\n" PROFILE,
		 {FILE_NAME ":2: [endpoints] sts ", "must be https"}},
		{"[endpoints]\nsts = http://127.1\nallow_http_loopback = yes\n" PROFILE,
		 {FILE_NAME ":2: [endpoints] sts ", "must be https"}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_refused(cases[i].text, cases[i].needles);
}

static void every_source_type_is_accepted(void **state)
{
	static const char *const texts[] = {
		"[source]\ntype = adc\nadc_metadata = yes\n",
		"[source]\ntype = file\nfile = /x\nsubject_token_hosts = a.test, 10.0.0.1\n",
		"[source]\ntype = gcloud\ngcloud = /opt/gcloud\n",
		"[source]\ntype = metadata\nmetadata_host = 127.0.0.1:8080\n",
		"[source]\ntype = offline\n",
	};
	char text[512];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		(void)snprintf(text, sizeof(text), "%s" PROFILE "listen = 127.0.0.1:80\n",
			       texts[i]);
		AUTO_CONFIG struct config *config = parse_good(text);
		assert_int_equal(config->profile_count, 1);
	}
}

static void a_long_bad_value_still_leaves_room_for_the_repair(void **state)
{
	char text[4096];

	(void)state;
	const int head = snprintf(text, sizeof(text), PROFILE "lifetime = ");
	memset(text + head, 0xe9, 3000);
	text[head + 3000] = '\0';
	assert_refused(text, (const char *const[4]){FILE_NAME ":4: [profile p] lifetime ",
						    "\"...: ", "duration from 5m to 12h"});
}

static void a_file_that_cannot_be_read_is_refused_with_the_repair(void **state)
{
	char path[] = "/tmp/postern-config-XXXXXX";
	struct config *config = NULL;
	struct err err = {0};

	(void)state;
	AUTO_CLOSE int fd = mkstemp(path);
	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(config_load(path, &config, &err), -1);
	assert_non_null(strstr(err.text, path));
	assert_non_null(strstr(err.text, "--config FILE"));
	assert_int_equal(config_load("/", &config, &err), -1);
	assert_non_null(strstr(err.text, "not a regular file"));
	assert_null(config);
}

static void a_file_is_read_from_disk(void **state)
{
	char path[] = "/tmp/postern-config-XXXXXX";
	struct config *loaded = NULL;
	struct err err = {0};

	(void)state;
	AUTO_CLOSE int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, sample, sizeof(sample) - 1), (int)sizeof(sample) - 1);
	const int result = config_load(path, &loaded, &err);
	unlink(path);
	assert_int_equal(result, 0);
	AUTO_CONFIG struct config *config = loaded;
	assert_string_equal(config->path, path);
	assert_int_equal(config->profile_count, 1);
}

static void a_configuration_lives_as_long_as_its_last_reference(void **state)
{
	(void)state;
	struct config *const config = parse_good(PROFILE);
	AUTO_CONFIG struct config *again = config_ref(config);

	config_unref(config);
	assert_string_equal(again->profiles[0].name, "p");
	config_unref(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_sample_of_the_page_is_read_whole),
		cmocka_unit_test(what_is_not_written_has_the_default_of_the_page),
		cmocka_unit_test(a_profile_has_the_defaults_of_the_page),
		cmocka_unit_test(every_value_that_is_not_the_default_is_kept),
		cmocka_unit_test(a_wildcard_is_taken_where_the_key_allows_it),
		cmocka_unit_test(profiles_may_share_an_address_where_the_port_is_0),
		cmocka_unit_test(names_of_profiles_follow_the_rule),
		cmocka_unit_test(a_margin_above_a_third_of_the_lifetime_shrinks_with_a_warning),
		cmocka_unit_test(a_file_that_is_no_ini_is_refused_with_its_line),
		cmocka_unit_test(an_over_long_line_is_refused_not_cut),
		cmocka_unit_test(unknown_names_are_refused_with_the_known_ones),
		cmocka_unit_test(a_bad_value_is_refused_with_line_key_value_and_repair),
		cmocka_unit_test(a_service_account_that_is_no_email_is_refused_with_the_reason),
		cmocka_unit_test(a_project_that_is_no_id_is_refused),
		cmocka_unit_test(keys_that_do_not_go_together_are_refused),
		cmocka_unit_test(every_source_type_is_accepted),
		cmocka_unit_test(a_long_bad_value_still_leaves_room_for_the_repair),
		cmocka_unit_test(a_file_that_cannot_be_read_is_refused_with_the_repair),
		cmocka_unit_test(a_file_is_read_from_disk),
		cmocka_unit_test(a_configuration_lives_as_long_as_its_last_reference),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
