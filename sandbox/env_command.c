/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `postern env`: a session for a harness that starts sandboxes itself.
 */
#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/base/err.h"
#include "broker/base/json.h"
#include "broker/base/option_table.h"
#include "broker/base/secret.h"
#include "sandbox/client/broker_client.h"
#include "sandbox/client/notice.h"
#include "sandbox/client/session_variables.h"
#include "sandbox/commands.h"
#include "sandbox/control_connection.h"
#include "sandbox/plan/providers.h"
#include "sandbox/plan/variables.h"
#include "sandbox/profile_choice.h"

#include <stdint.h>
#include <string.h>

#define PRINT_MAX_BYTES ((size_t)1 << 20)
/* What a session is closed by. */
#define SESSION_VARIABLE "POSTERN_SESSION"

enum format {
	FORMAT_SHELL,
	FORMAT_DOCKER,
	FORMAT_JSON,
};

static const char *const format_words[] = {"shell", "docker", "json", NULL};

struct env_options {
	const char *control;
	const char *profile;
	const char *provider;
	enum format format;
	int64_t ttl_s; /* 0: the profile's longest */
	bool help;
};

#define AT(field) offsetof(struct env_options, field)

static const struct option_spec specs[] = {
	{"--profile", "NAME", OPTION_TEXT, AT(profile),
	 .help = "the session's profile; default: the only one, else \"default\""},
	{"--provider", "NAME", OPTION_TEXT, AT(provider),
	 .help = "instead of it: a model provider; a key-based one gives an empty set"},
	{"--format", "shell|docker|json", OPTION_WORD, AT(format), format_words,
	 .help = "export lines (default), lines for --env-file, or one object"},
	{"--ttl", "D", OPTION_DURATION, AT(ttl_s),
	 .help = "how long the session lasts; default: as long as the profile lets it"},
	{"--control", "PATH", OPTION_TEXT, AT(control), .help = "the broker's control socket"},
	{"--help", NULL, OPTION_SWITCH, AT(help), .help = "print this and exit"},
};

static const struct option_table table = {.specs = specs, .count = ARRAY_LEN(specs)};

/* Released together. */
struct env_run {
	const struct invocation *invocation;
	struct env_options options;
	const struct provider *provider;
	struct control_connection connection;
	json_t *status;	 /* of the broker */
	json_t *session; /* its answer */
	struct variables variables;
};

static void release(struct env_run *run)
{
	variables_deinit(&run->variables);
	json_decref(run->session);
	json_decref(run->status);
	control_connection_close(&run->connection);
}

static int read_options(struct env_run *run, struct err *err)
{
	struct env_options *const options = &run->options;
	const struct invocation *const invocation = run->invocation;
	int rest = 0;

	if (option_table_read(&table, invocation->argc, invocation->argv, options, &rest, err))
		return -1;
	if (options->help)
		return 0;
	if (rest < invocation->argc)
		return err_set(err, ERR_USAGE, "env takes options only; env --help lists them");
	if (options->profile && options->provider)
		return err_set(err, ERR_USAGE, "--profile beside --provider; keep one of them");
	return options->provider ? provider_find(options->provider, &run->provider, err) : 0;
}

/* Else it would be several variables in a file of lines. */
static bool is_one_line(const char *value)
{
	return value[strcspn(value, "\n\r")] == '\0';
}

static void print_shell(const struct variable *variable, struct buf *out)
{
	buf_addf(out, "export %s='", variable->name);
	for (const char *at = secret_bytes(variable->value); *at; at++) {
		if (*at == '\'')
			buf_add(out, "'\\''");
		else
			buf_add_bytes(out, at, 1);
	}
	buf_add(out, "'\n");
}

static void print_json(const struct variables *list, struct buf *out)
{
	json_auto_t *object = json_object();

	for (size_t i = 0; i < list->count; i++)
		json_object_set_new(object, list->items[i].name,
				    json_string(secret_bytes(list->items[i].value)));
	AUTO_FREE char *text = json_dumps(object, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
	buf_addf(out, "%s\n", text);
}

static void print(const struct env_run *run, struct buf *out)
{
	for (size_t i = 0; i < run->variables.count; i++) {
		const struct variable *const variable = &run->variables.items[i];
		switch (run->options.format) {
		case FORMAT_SHELL:
			print_shell(variable, out);
			break;
		case FORMAT_DOCKER:
			buf_addf(out, "%s=%s\n", variable->name, secret_bytes(variable->value));
			break;
		case FORMAT_JSON:
			break;
		}
	}
	if (run->options.format == FORMAT_JSON)
		print_json(&run->variables, out);
}

static int say(const struct env_run *run)
{
	AUTO_BUF struct buf text;

	buf_init(&text, PRINT_MAX_BYTES);
	print(run, &text);
	return command_say(&text);
}

/* Returns the exit status. */
static int open_session(struct env_run *run, struct err *err)
{
	static const struct broker_question status_question = {"GET", "/v1/status", NULL};
	struct profile_choice profile = {0};

	int status = broker_client_ask(run->connection.client, &status_question, &run->status, err);
	if (!status)
		status = profile_choose(run->status, run->options.profile, run->provider, &profile,
					err);
	if (status)
		return status;
	json_auto_t *request = json_pack("{s:s, s:s, s:s}", "profile", profile.name, "pin", "first",
					 "label", "postern env");
	if (run->options.ttl_s)
		json_object_set_new(request, "ttl_s", json_integer(run->options.ttl_s));
	const struct broker_question question = {"POST", "/v1/sessions", request};
	return broker_client_ask(run->connection.client, &question, &run->session, err);
}

static int read_session(struct env_run *run, struct err *err)
{
	const char *const id = json_get_string(run->session, "id");

	session_variables(run->session, &run->variables);
	for (size_t i = 0; i < run->variables.count; i++)
		if (!variable_name_valid(run->variables.items[i].name) ||
		    !is_one_line(secret_bytes(run->variables.items[i].value)))
			return err_set(err, ERR_INVALID,
				       "the broker's session sets what is no variable");
	if (!id || !broker_session_id_is_valid(id))
		return err_set(err, ERR_INVALID, "the broker's session has no id");
	variables_set(&run->variables, SESSION_VARIABLE, VARIABLE_SESSION, id);
	return 0;
}

/* Nobody would know of a session that could not be printed. */
static void close_session(struct env_run *run)
{
	const char *const id = json_get_string(run->session, "id");
	struct err err;

	if (!id || !broker_session_id_is_valid(id))
		return;
	AUTO_FREE char *path = broker_session_path(id);
	const struct broker_question question = {"DELETE", path, NULL};
	if (broker_client_ask(run->connection.client, &question, NULL, &err))
		notice("session %s stays open: %s", id, err.text);
}

static int serve(struct env_run *run)
{
	struct err err;

	if (run->provider && run->provider->kind == PROVIDER_KEY)
		return say(run);
	int status = control_connection_open(&run->connection, run->invocation,
					     run->options.control, &err);
	if (!status)
		status = open_session(run, &err);
	if (status)
		return command_fail_as((enum status)status, &err);
	if (read_session(run, &err)) {
		close_session(run);
		return command_fail_as(STATUS_BROKER, &err);
	}
	status = say(run);
	if (status)
		close_session(run);
	return status;
}

int env_command(const struct invocation *invocation)
{
	struct env_run run = {.invocation = invocation};
	struct err err;
	int status = STATUS_OK;

	if (read_options(&run, &err))
		status = command_fail(&err);
	else if (run.options.help)
		status = command_help("env [option...]", &table);
	else
		status = serve(&run);
	release(&run);
	return status;
}
