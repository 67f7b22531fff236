/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/plan/plan_flags.h"

#include "broker/base/alloc.h"
#include "broker/base/err.h"
#include "broker/base/log.h"
#include "broker/base/parse.h"
#include "sandbox/plan/engine_args.h"
#include "sandbox/plan/paths.h"
#include "sandbox/plan/plan.h"
#include "sandbox/plan/version.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* A container's /tmp is 0755 in some images: without the mode only root could write. */
#define TMPFS_OPTIONS "rw,nosuid,nodev,mode=1777"

/* Of both engines, where --stop-timeout says nothing; and the longest that a run may last. */
#define STOP_DEFAULT_S 10
#define STOP_MAX_S ((uint64_t)720 * 3600)

/* In every sandbox of every engine. */
static const char *const confinement[] = {
	/* As PID 1 a command without handlers would ignore SIGTERM. */
	"--init",
	"--cap-drop=ALL",
	"--security-opt=no-new-privileges",
	"--pids-limit=512",
};

void plan_warn(struct plan *plan, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	strv_addv(&plan->warnings, fmt, ap);
	va_end(ap);
}

static void add_to(struct strv *flags, const char *name, const char *value)
{
	strv_addf(flags, "--%s%s%s", name, value ? "=" : "", value ? value : "");
}

static void add(struct plan *plan, const char *name, const char *value)
{
	add_to(&plan->flags, name, value);
}

/* Names and networks are the door's, where there is one: engines refuse or ignore them at the sandbox. */
static struct strv *network_flags(struct plan *plan)
{
	return plan->door.wanted ? &plan->door.flags : &plan->flags;
}

/* By which address the sandbox reaches the host: engines differ in what they know. */
static const struct host_address {
	enum engine_kind kind;
	unsigned long major; /* from this version on */
	unsigned long minor;
	const char *address; /* NULL: the one that was read from the engine */
} host_addresses[] = {
	{ENGINE_DOCKER, 0, 0, "host-gateway"},
	{ENGINE_PODMAN, 4, 7, "host-gateway"},
	{ENGINE_PODMAN, 0, 0, NULL},
};

static int add_host(struct plan *plan, struct err *err)
{
	const struct engine_facts *const engine = &plan->engine;
	const char *address = engine->host_address;

	for (size_t i = 0; i < ARRAY_LEN(host_addresses); i++) {
		const struct host_address *const entry = &host_addresses[i];
		if (entry->kind != engine->kind ||
		    !version_is_at_least(engine->version, entry->major, entry->minor))
			continue;
		if (entry->address)
			address = entry->address;
		break;
	}
	if (!address && (!plan->session.wanted || plan->door.wanted))
		return 0;
	if (!address)
		return err_set(
			err, ERR_INVALID,
			"%s %s does not know host-gateway and its network's address could not "
			"be read; use 4.7 or later, or --network with a bridge that has one",
			engine_kind_name(engine->kind), engine->version);
	AUTO_FREE char *value = xasprintf(PLAN_HOST_ALIAS ":%s", address);
	add_to(network_flags(plan), "add-host", value);
	return 0;
}

static int add_workdir(struct plan *plan, const struct run_options *options, struct err *err)
{
	const char *const asked = engine_arg_value(&options->engine_args, "workdir");
	const bool has_workspace = options->workspace != NULL;
	struct quoted q;

	if (!asked) {
		if (has_workspace)
			add(plan, "workdir", PLAN_WORKSPACE);
		return 0;
	}
	if (path_is_normal(asked) && (!has_workspace || path_is_within(asked, PLAN_WORKSPACE)))
		return 0;
	return err_set(err, ERR_UNSUPPORTED,
		       "--engine-arg --workdir=%s: must be an absolute path%s",
		       quote_str(&q, asked), has_workspace ? " in " PLAN_WORKSPACE : "");
}

static bool is_true(const char *value)
{
	return value && (!strcmp(value, "true") || !strcmp(value, "1") || !strcmp(value, "t"));
}

static bool asks_for_tmp(const struct run_options *options)
{
	for (size_t i = 0; i < options->engine_args.count; i++)
		if (!strncmp(options->engine_args.items[i], "--tmpfs=/tmp", strlen("--tmpfs=/tmp")))
			return true;
	return false;
}

static void add_file_systems(struct plan *plan, const struct run_options *options)
{
	/* HOME must be a place that the command can write to. */
	if (!plan->home_to_make)
		add(plan, "tmpfs", PLAN_HOME ":" TMPFS_OPTIONS ",exec");
	if (is_true(engine_arg_value(&options->engine_args, "read-only")) && !asks_for_tmp(options))
		add(plan, "tmpfs", "/tmp:" TMPFS_OPTIONS);
}

static void warn_of_unreachable_host(struct plan *plan)
{
	if (!plan->session.wanted || plan->door.wanted)
		return;
	if (plan->network && !strcmp(plan->network, "none"))
		plan_warn(plan, "--network none has no way to the session's endpoint");
	if (plan->engine.rootless)
		plan_warn(plan,
			  "a rootless %s may have no way to the session's endpoint: its bridge is "
			  "in a namespace of its own",
			  engine_kind_name(plan->engine.kind));
}

/* What the engine does with a value that is no number of seconds is its own affair. */
static int64_t stop_seconds(const struct run_options *options)
{
	const char *const asked = engine_arg_value(&options->engine_args, "stop-timeout");
	uint64_t seconds;

	return asked && !parse_uint(asked, 0, STOP_MAX_S, &seconds) ? (int64_t)seconds :
								      STOP_DEFAULT_S;
}

static void add_engine_args(struct plan *plan, const struct run_options *options)
{
	for (size_t i = 0; i < options->engine_args.count; i++) {
		const char *const arg = options->engine_args.items[i];
		switch (engine_arg_target(arg)) {
		case ENGINE_ARG_SANDBOX:
			strv_add(&plan->flags, arg, strlen(arg));
			break;
		case ENGINE_ARG_NETWORK:
			strv_add(network_flags(plan), arg, strlen(arg));
			break;
		case ENGINE_ARG_IMAGE:
			strv_add(&plan->flags, arg, strlen(arg));
			if (plan->door.wanted)
				strv_add(&plan->door.flags, arg, strlen(arg));
			break;
		case ENGINE_ARG_PULL:
			if (!plan->door.wanted)
				strv_add(&plan->flags, arg, strlen(arg));
			break;
		}
	}
}

int plan_add_flags(struct plan *plan, const struct run_options *options, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(confinement); i++)
		strv_add(&plan->flags, confinement[i], strlen(confinement[i]));
	if (plan->stdio != STDIO_OUTPUT)
		add(plan, "interactive", NULL);
	if (plan->stdio == STDIO_TTY)
		add(plan, "tty", NULL);
	if (plan->network)
		add_to(network_flags(plan), "network", plan->network);
	if (add_host(plan, err))
		return -1;
	add(plan, "user", plan->user);
	if (add_workdir(plan, options, err))
		return -1;
	add_file_systems(plan, options);
	add_engine_args(plan, options);
	plan->stop_s = stop_seconds(options);
	warn_of_unreachable_host(plan);
	return 0;
}
