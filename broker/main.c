/* SPDX-License-Identifier: Apache-2.0 */
/*
 * posternd: a token broker and metadata emulator for sandboxed agents.
 */
#include "broker/base/buf.h"
#include "broker/base/err.h"
#include "broker/base/json.h"
#include "broker/base/log.h"
#include "broker/broker.h"
#include "broker/config.h"
#include "broker/options.h"
#include "broker/process.h"

#include <stdio.h>

/* Exit statuses. */
#define STATUS_OK 0
#define STATUS_USAGE 2

static int say(const char *text)
{
	return fputs(text, stdout) < 0 || fflush(stdout) ? 1 : STATUS_OK;
}

static int help(void)
{
	AUTO_BUF struct buf text;

	buf_init(&text, 8192);
	options_help(&text);
	return say(text.data);
}

static int fail(const struct err *err)
{
	log_error("%s", err->text);
	return STATUS_USAGE;
}

static int check_config(const struct config *config, struct err *err)
{
	if (broker_check(config, err))
		return fail(err);
	(void)printf("%s: good, profiles=%zu\n", config->path ? config->path : "flags",
		     config->profile_count);
	return fflush(stdout) ? 1 : STATUS_OK;
}

static int serve(const struct options *options, struct config *config, struct err *err)
{
	struct broker broker;

	if (broker_start(&broker, options, config, err))
		return fail(err);
	const int status = broker_run(&broker);
	broker_stop(&broker);
	return status;
}

int main(int argc, char **argv)
{
	struct environment environment;
	struct options options;
	struct err err;
	AUTO_CONFIG struct config *config = NULL;

	process_harden();
	json_clear_on_free();
	environment_read(&environment);
	log_init(LOG_LEVEL_INFO, environment.journal_stream != NULL);
	if (options_parse(&options, argc, argv, &err))
		return fail(&err);
	if (options.action == OPTIONS_HELP)
		return help();
	if (options.action == OPTIONS_VERSION)
		return say("posternd " POSTERN_VERSION "\n");
	if (options_to_config(&options, &config, &err))
		return fail(&err);
	log_init(config->broker.log_level, environment.journal_stream != NULL);
	if (options.action == OPTIONS_CHECK_CONFIG)
		return check_config(config, &err);
	return serve(&options, config, &err);
}
