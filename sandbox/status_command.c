/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `postern status`.
 */
#include "broker/base/buf.h"
#include "broker/base/err.h"
#include "broker/base/json.h"
#include "broker/base/option_table.h"
#include "sandbox/client/broker_client.h"
#include "sandbox/commands.h"
#include "sandbox/control_connection.h"

#include <stdbool.h>

#define PRINT_MAX_BYTES ((size_t)8 << 20)

struct status_options {
	const char *control;
	bool json;
	bool help;
};

#define AT(field) offsetof(struct status_options, field)

static const struct option_spec specs[] = {
	{"--json", NULL, OPTION_SWITCH, AT(json), .help = "all of it, as the broker says it"},
	{"--control", "PATH", OPTION_TEXT, AT(control), .help = "the broker's control socket"},
	{"--help", NULL, OPTION_SWITCH, AT(help), .help = "print this and exit"},
};

static const struct option_table table = {.specs = specs, .count = ARRAY_LEN(specs)};

static const char *text_of(const json_t *object, const char *key)
{
	const char *const text = json_get_string(object, key);

	return text && *text ? text : "-";
}

static long long number_of(const json_t *object, const char *key)
{
	return (long long)json_integer_value(json_object_get(object, key));
}

static void print_profile(const json_t *profile, struct buf *out)
{
	const json_t *const token = json_object_get(profile, "token");
	const json_t *const failure = json_object_get(profile, "last_failure");

	buf_addf(out, "profile   %s %s %s project=%s location=%s sessions=%lld\n",
		 text_of(profile, "name"), text_of(profile, "backend"),
		 text_of(profile, "service_account"), text_of(profile, "project"),
		 text_of(profile, "location"), number_of(profile, "sessions"));
	if (json_is_object(token))
		buf_addf(out, "          token %s expires %s\n", text_of(token, "state"),
			 text_of(token, "expires_at"));
	if (json_is_object(failure))
		buf_addf(out, "          last failure %s at %s (ref %s)\n",
			 text_of(failure, "class"), text_of(failure, "at"),
			 text_of(failure, "ref"));
}

static void print(const json_t *status, struct buf *out)
{
	const json_t *const source = json_object_get(status, "source");
	const json_t *const sessions = json_object_get(status, "sessions");
	const json_t *const counters = json_object_get(status, "counters");
	const json_t *profile = NULL;
	size_t i = 0;

	buf_addf(out, "broker    %s pid=%lld since %s\n", text_of(status, "version"),
		 number_of(status, "pid"), text_of(status, "started_at"));
	buf_addf(out, "source    %s %s %s expires %s\n", text_of(source, "type"),
		 text_of(source, "principal"), text_of(source, "state"),
		 text_of(source, "expires_at"));
	buf_addf(out, "sessions  %lld of %lld\n", number_of(sessions, "open"),
		 number_of(sessions, "limit"));
	buf_addf(out,
		 "counters  requests=%lld tokens=%lld mints=%lld mint_failures=%lld "
		 "refused=%lld\n",
		 number_of(counters, "requests"), number_of(counters, "tokens"),
		 number_of(counters, "mints"), number_of(counters, "mint_failures"),
		 number_of(counters, "refused"));
	json_array_foreach(json_object_get(status, "profiles"), i, profile) {
		print_profile(profile, out);
	}
}

static int say(const json_t *status, bool json)
{
	AUTO_BUF struct buf text;

	buf_init(&text, PRINT_MAX_BYTES);
	if (json) {
		AUTO_FREE char *dump = json_dumps(status, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
		buf_addf(&text, "%s\n", dump);
	} else {
		print(status, &text);
	}
	return command_say(&text);
}

int status_command(const struct invocation *invocation)
{
	static const struct broker_question question = {"GET", "/v1/status", NULL};
	AUTO_CONTROL_CONNECTION struct control_connection connection = {0};
	struct status_options options = {0};
	json_auto_t *body = NULL;
	struct err err;
	int rest = 0;

	if (option_table_read(&table, invocation->argc, invocation->argv, &options, &rest, &err))
		return command_fail(&err);
	if (options.help)
		return command_help("status [--json]", &table);
	if (rest < invocation->argc) {
		(void)err_set(&err, ERR_USAGE,
			      "status takes options only; status --help lists them");
		return command_fail(&err);
	}
	int status = control_connection_open(&connection, invocation, options.control, &err);
	if (!status)
		status = broker_client_ask(connection.client, &question, &body, &err);
	return status ? command_fail_as((enum status)status, &err) : say(body, options.json);
}
