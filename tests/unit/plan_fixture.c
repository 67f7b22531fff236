/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/plan_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const plain_environ[] = {"HOME=/home/me", "PATH=/bin", NULL};

void run_init_attached(struct run *run, const char *attach, const char *const arguments[])
{
	int argc = 3;

	*run = (struct run){
		.argv = {(char *)"run", (char *)"--attach", (char *)attach},
		.caller = {.uid = 1234,
			   .gid = 1235,
			   .user = (char *)"me",
			   .home = (char *)"/home/me",
			   .environ = (char *const *)plain_environ},
		.engine = {.binary = "/usr/bin/docker", .version = "24.0.7"},
	};
	for (; *arguments; arguments++)
		run->argv[argc++] = (char *)*arguments;
	if (run_options_parse(&run->options, argc, run->argv, &run->err))
		fail_msg("%s", run->err.text);
	run->engine.kind = run->options.engine;
	run->inputs = (struct plan_inputs){
		.options = &run->options,
		.caller = &run->caller,
		.engine = &run->engine,
		.profile = "vertex",
		.project = "my-project",
		.location = "europe-west4",
		.run_id = "00112233aabbccdd",
		.directory = DIRECTORY,
		.launcher = {.pid = 42, .start = 4711, .pid_namespace = 4026531836},
	};
}

void run_deinit(struct run *run)
{
	plan_free(run->plan);
	strv_deinit(&run->nameservers);
	run_options_deinit(&run->options);
}

struct plan *plan_good(struct run *run)
{
	if (plan_new(&run->inputs, &run->plan, &run->err)) {
		fail_msg("%s", run->err.text);
		abort(); /* never reached; clang-tidy does not know fail_msg() */
	}
	return run->plan;
}

size_t position(const struct strv *list, const char *item)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->items[i], item))
			return i;
	return SIZE_MAX;
}
