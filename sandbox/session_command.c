/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `postern session list` and `postern session close`.
 */
#include "broker/base/buf.h"
#include "broker/base/err.h"
#include "broker/base/json.h"
#include "broker/base/log.h"
#include "broker/base/option_table.h"
#include "sandbox/client/broker_client.h"
#include "sandbox/commands.h"
#include "sandbox/control_connection.h"

#include <string.h>

#define PRINT_MAX_BYTES ((size_t)8 << 20)
#define USAGE "session list | session close ID|--profile NAME|--all"

struct session_options {
	const char *control;
	const char *profile;
	bool all;
	bool help;
};

#define AT(field) offsetof(struct session_options, field)

static const struct option_spec specs[] = {
	{"--profile", "NAME", OPTION_TEXT, AT(profile), .help = "close: all of this profile"},
	{"--all", NULL, OPTION_SWITCH, AT(all), .help = "close: all that are yours to close"},
	{"--control", "PATH", OPTION_TEXT, AT(control), .help = "the broker's control socket"},
	{"--help", NULL, OPTION_SWITCH, AT(help), .help = "print this and exit"},
};

static const struct option_table table = {.specs = specs, .count = ARRAY_LEN(specs)};

static const char *text_of(const json_t *session, const char *key)
{
	const char *const text = json_get_string(session, key);

	return text && *text ? text : "-";
}

static void print_session(const json_t *session, struct buf *out)
{
	const json_t *const peers = json_object_get(session, "peer");
	const char *const peer = json_string_value(json_array_get(peers, 0));

	buf_addf(out, "%-16s %-20s %-24s %-24s %-20s %s\n", text_of(session, "id"),
		 text_of(session, "profile"), text_of(session, "listen"), peer ? peer : "-",
		 text_of(session, "expires_at"), text_of(session, "label"));
}

/* Returns the exit status. */
static int ask_list(const struct control_connection *connection, json_t **body, struct err *err)
{
	static const struct broker_question question = {"GET", "/v1/sessions", NULL};

	return broker_client_ask(connection->client, &question, body, err);
}

static int list_sessions(const struct control_connection *connection, struct err *err)
{
	json_auto_t *body = NULL;
	const json_t *session = NULL;
	size_t i = 0;
	AUTO_BUF struct buf text;

	buf_init(&text, PRINT_MAX_BYTES);
	const int status = ask_list(connection, &body, err);
	if (status)
		return command_fail_as((enum status)status, err);
	buf_addf(&text, "%-16s %-20s %-24s %-24s %-20s %s\n", "ID", "PROFILE", "LISTEN", "PEER",
		 "EXPIRES", "LABEL");
	json_array_foreach(json_object_get(body, "sessions"), i, session) {
		print_session(session, &text);
	}
	return command_say(&text);
}

/* Returns the exit status. */
static int close_one(const struct control_connection *connection, const char *id, struct err *err)
{
	struct quoted q;

	if (!broker_session_id_is_valid(id)) {
		(void)err_set(err, ERR_USAGE, "%s is no session's id: 16 hex digits",
			      quote_str(&q, id));
		return STATUS_USAGE;
	}
	AUTO_FREE char *path = broker_session_path(id);
	const struct broker_question question = {"DELETE", path, NULL};
	return broker_client_ask(connection->client, &question, NULL, err);
}

/* Returns the exit status. */
static int close_many(const struct control_connection *connection, const char *profile,
		      struct err *err)
{
	json_auto_t *body = NULL;
	const json_t *session = NULL;
	size_t i = 0;

	int status = ask_list(connection, &body, err);
	if (status)
		return status;
	json_array_foreach(json_object_get(body, "sessions"), i, session) {
		if (profile && strcmp(text_of(session, "profile"), profile) != 0)
			continue;
		status = close_one(connection, text_of(session, "id"), err);
		/* It ended by itself since the list was made. */
		if (status && status != STATUS_REFUSED)
			return status;
	}
	return STATUS_OK;
}

static int close_sessions(const struct control_connection *connection,
			  const struct session_options *options, const char *id, struct err *err)
{
	const int status = id ? close_one(connection, id, err) :
				close_many(connection, options->profile, err);

	return status ? command_fail_as((enum status)status, err) : STATUS_OK;
}

static int check(const struct session_options *options, int count, char **words, struct err *err)
{
	const int chosen = (options->profile != NULL) + options->all;

	if (count == 1 && !strcmp(words[0], "list") && !chosen)
		return 0;
	if (count >= 1 && !strcmp(words[0], "close") && count - 1 + chosen == 1)
		return 0;
	return err_set(err, ERR_USAGE, "usage: postern " USAGE);
}

/* Options may stand before and behind the word. */
static int read_words(const struct invocation *invocation, struct session_options *options,
		      char *words[static 3], struct err *err)
{
	int argc = invocation->argc;
	char **argv = invocation->argv;
	int count = 0;
	int rest = 0;

	while (argc > 1) {
		if (option_table_read(&table, argc, argv, options, &rest, err))
			return -1;
		if (rest >= argc)
			break;
		if (count == 2)
			return err_set(err, ERR_USAGE, "usage: postern " USAGE);
		words[count++] = argv[rest];
		argc -= rest;
		argv += rest;
	}
	return options->help ? 0 : check(options, count, words, err);
}

int session_command(const struct invocation *invocation)
{
	AUTO_CONTROL_CONNECTION struct control_connection connection = {0};
	struct session_options options = {0};
	char *words[3] = {NULL};
	struct err err;

	if (read_words(invocation, &options, words, &err))
		return command_fail(&err);
	if (options.help)
		return command_help(USAGE, &table);
	const int status = control_connection_open(&connection, invocation, options.control, &err);
	if (status)
		return command_fail_as((enum status)status, &err);
	/* Checked: it is one of two. */
	if (words[0] && !strcmp(words[0], "list"))
		return list_sessions(&connection, &err);
	return close_sessions(&connection, &options, words[1], &err);
}
