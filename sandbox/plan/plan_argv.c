/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/plan/plan_argv.h"

#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/base/secret.h"
#include "sandbox/plan/plan.h"
#include "sandbox/plan/plan_door.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_ENV_FILE_BYTES ((size_t)64 << 10)
/* Stands for the id of a session that is not open yet. */
#define NO_SESSION_ID "SESSION"
/* And for that of a door that is not made yet. */
#define NO_DOOR_ID "DOOR"

void plan_add_labels(const struct plan *plan, struct strv *argv)
{
	strv_addf(argv, "--label=" PLAN_LABEL_OWNER "=%s", plan->owner);
	strv_addf(argv, "--label=" PLAN_LABEL_RUN "=%s", plan->run_id);
	if (plan->session.wanted)
		strv_addf(argv, "--label=" PLAN_LABEL_SESSION "=%s",
			  plan->session.id ? plan->session.id : NO_SESSION_ID);
	strv_addf(argv, "--label=" PLAN_LABEL_LAUNCHER_PID "=%" PRIu64, plan->launcher.pid);
	strv_addf(argv, "--label=" PLAN_LABEL_LAUNCHER_START "=%" PRIu64, plan->launcher.start);
	strv_addf(argv, "--label=" PLAN_LABEL_LAUNCHER_NAMESPACE "=%" PRIu64,
		  plan->launcher.pid_namespace);
}

/*
 * Whether the variable goes by the file: the client's own environment has, or should have, another value
 * of that name.
 */
static bool goes_by_file(const struct plan *plan, const struct variable *variable)
{
	if (variable->source == VARIABLE_CALLER)
		return false;
	return !strcmp(variable->name, "HOME") || variables_find(&plan->client, variable->name);
}

/* By name alone: the client takes the value from its environment, and where it has none unsets it. */
static void add_variables(struct plan *plan)
{
	AUTO_BUF struct buf file;

	buf_init(&file, MAX_ENV_FILE_BYTES);
	for (size_t i = 0; i < plan->container.count; i++) {
		const struct variable *const variable = &plan->container.items[i];
		const bool is_unset = variable->source == VARIABLE_UNSET;
		if (is_unset && plan->engine.kind == ENGINE_PODMAN) {
			/* Its "-e NAME" leaves the image's value alone. */
			strv_addf(&plan->argv, "--unsetenv=%s", variable->name);
		} else if (goes_by_file(plan, variable)) {
			buf_addf(&file, "%s=%s\n", variable->name,
				 variable->value ? secret_bytes(variable->value) : "");
		} else {
			strv_addf(&plan->argv, "-e");
			strv_addf(&plan->argv, "%s", variable->name);
		}
	}
	free(plan->env_file_text);
	plan->env_file_text = xstrdup(file.data);
}

static void add_mounts(struct plan *plan)
{
	for (size_t i = 0; i < plan->mount_count; i++) {
		const struct plan_mount *const mount = &plan->mounts[i];
		strv_addf(&plan->argv, "--mount=type=bind,src=%s,dst=%s%s", mount->src, mount->dst,
			  mount->ro ? ",readonly" : "");
	}
}

/* The sandbox joins by the full id: a name could be another container's by then. */
static void add_network(struct plan *plan)
{
	if (plan->door.wanted)
		strv_addf(&plan->argv, "--network=container:%s",
			  plan->door.id ? plan->door.id : NO_DOOR_ID);
}

static void render_start(struct plan *plan)
{
	strv_deinit(&plan->start_argv);
	if (!plan->door.wanted)
		return;
	strv_addf(&plan->start_argv, "%s", plan->engine.binary);
	strv_addf(&plan->start_argv, "start");
	strv_addf(&plan->start_argv, "--attach");
	if (plan->stdio != STDIO_OUTPUT)
		strv_addf(&plan->start_argv, "--interactive");
	strv_addf(&plan->start_argv, "%s", plan->name);
}

void plan_render(struct plan *plan)
{
	strv_deinit(&plan->argv);
	strv_addf(&plan->argv, "%s", plan->engine.binary);
	strv_addf(&plan->argv, "%s", plan->door.wanted ? "create" : "run");
	strv_addf(&plan->argv, "--name=%s", plan->name);
	plan_add_labels(plan, &plan->argv);
	strv_addf(&plan->argv, "--cidfile=%s", plan->cidfile);
	add_network(plan);
	strv_copy(&plan->argv, &plan->flags);
	add_mounts(plan);
	strv_addf(&plan->argv, "--env-file=%s", plan->env_file);
	add_variables(plan);
	strv_addf(&plan->argv, "%s", plan->image);
	strv_copy(&plan->argv, &plan->command);
	render_start(plan);
	plan_render_door(plan);
}

void plan_run_environ(const struct plan *plan, struct environ_block *out)
{
	AUTO_VARIABLES struct variables taken = {0};

	environ_block_add(out, &plan->client, NULL);
	for (size_t i = 0; i < plan->client.count; i++)
		variables_set(&taken, plan->client.items[i].name, VARIABLE_CLIENT, NULL);
	variables_set(&taken, "HOME", VARIABLE_CLIENT, NULL);
	environ_block_add(out, &plan->container, &taken);
}

void plan_engine_environ(const struct plan *plan, struct environ_block *out)
{
	environ_block_add(out, &plan->client, NULL);
}
