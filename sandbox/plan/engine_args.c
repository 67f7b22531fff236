/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/plan/engine_args.h"

#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/base/err.h"
#include "broker/base/log.h"
#include "broker/base/strv.h"

#include <string.h>

static const struct {
	const char *name;
	enum engine_arg_target target;
} allowed[] = {
	{"memory", ENGINE_ARG_SANDBOX},	     {"memory-swap", ENGINE_ARG_SANDBOX},
	{"cpus", ENGINE_ARG_SANDBOX},	     {"cpu-shares", ENGINE_ARG_SANDBOX},
	{"cpuset-cpus", ENGINE_ARG_SANDBOX}, {"ulimit", ENGINE_ARG_SANDBOX},
	{"shm-size", ENGINE_ARG_SANDBOX},    {"label", ENGINE_ARG_SANDBOX},
	{"hostname", ENGINE_ARG_NETWORK},    {"log-driver", ENGINE_ARG_SANDBOX},
	{"log-opt", ENGINE_ARG_SANDBOX},     {"stop-timeout", ENGINE_ARG_SANDBOX},
	{"platform", ENGINE_ARG_IMAGE},	     {"pull", ENGINE_ARG_PULL},
	{"workdir", ENGINE_ARG_SANDBOX},     {"read-only", ENGINE_ARG_SANDBOX},
	{"tmpfs", ENGINE_ARG_SANDBOX},	     {"gpus", ENGINE_ARG_SANDBOX},
};

#define HOST_NAMESPACE "it shares a namespace with the host or another container"
#define MORE_RIGHTS "a sandbox gets no right beyond none"
#define USE_MOUNT "use --mount SRC:DST[:ro], which is checked"
#define USE_ENV "use --env NAME, which keeps values out of argument vectors"
#define FIXED "the launcher sets it itself"

static const struct {
	const char *flag;
	const char *why;
} refused[] = {
	{"--privileged", "it gives the sandbox the host"},
	{"--cap-add", MORE_RIGHTS},
	{"--cap-drop", FIXED},
	{"--security-opt", MORE_RIGHTS},
	{"--group-add", MORE_RIGHTS},
	{"--sysctl", MORE_RIGHTS},
	{"--device", "devices are the host's"},
	{"--device-cgroup-rule", "devices are the host's"},
	{"--device-read-bps", "devices are the host's"},
	{"--blkio-weight-device", "devices are the host's"},
	{"--pid", HOST_NAMESPACE},
	{"--ipc", HOST_NAMESPACE},
	{"--uts", HOST_NAMESPACE},
	{"--userns", HOST_NAMESPACE},
	{"--cgroupns", HOST_NAMESPACE},
	{"--cgroup-parent", HOST_NAMESPACE},
	{"--pod", HOST_NAMESPACE},
	{"--link", HOST_NAMESPACE},
	{"--net", "use --network NET, which is checked"},
	{"--network-alias", "an alias lets it stand in for another container"},
	{"--ip", "the address is the engine's choice"},
	{"--ip6", "the address is the engine's choice"},
	{"--mac-address", "the address is the engine's choice"},
	{"--volume", USE_MOUNT},
	{"-v", USE_MOUNT},
	{"--volumes-from", USE_MOUNT},
	{"--volume-driver", USE_MOUNT},
	{"--rootfs", USE_MOUNT},
	{"--secret", USE_MOUNT},
	{"-e", USE_ENV},
	{"--env-file", USE_ENV},
	{"--env-host", USE_ENV},
	{"--env-merge", USE_ENV},
	{"--http-proxy", USE_ENV},
	{"--unsetenv", FIXED},
	{"--publish", "a sandbox listens to nobody"},
	{"--publish-all", "a sandbox listens to nobody"},
	{"-p", "a sandbox listens to nobody"},
	{"-P", "a sandbox listens to nobody"},
	{"--add-host", FIXED},
	{"--no-hosts", FIXED},
	{"--name", FIXED},
	{"--rm", FIXED},
	{"--cidfile", FIXED},
	{"--init", FIXED},
	{"--pids-limit", FIXED},
	{"--label-file", "use --engine-arg=--label=NAME=VALUE"},
	{"--restart", "a sandbox ends with its run"},
	{"--detach", "a sandbox ends with its run"},
	{"-d", "a sandbox ends with its run"},
	{"--runtime", "the runtime is the host's choice"},
	{"--oom-kill-disable", "it takes the host's memory with it"},
	{"--oom-score-adj", "it takes the host's memory with it"},
};

const char *engine_option_refusal(const char *flag)
{
	for (size_t i = 0; i < ARRAY_LEN(refused); i++)
		if (!strcmp(refused[i].flag, flag))
			return refused[i].why;
	return NULL;
}

/* NULL: it is not allowed. */
static const enum engine_arg_target *find_allowed(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
		if (strlen(allowed[i].name) == len && !memcmp(allowed[i].name, name, len))
			return &allowed[i].target;
	return NULL;
}

enum engine_arg_target engine_arg_target(const char *arg)
{
	const enum engine_arg_target *const target = find_allowed(arg + 2, strcspn(arg + 2, "="));

	return target ? *target : ENGINE_ARG_SANDBOX;
}

static int refuse(const char *flag, struct err *err)
{
	struct quoted q;
	AUTO_BUF struct buf names;

	buf_init(&names, 1024);
	for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
		buf_addf(&names, "%s%s", i ? ", " : "", allowed[i].name);
	return err_set(err, ERR_USAGE, "--engine-arg %s: must be --NAME=VALUE with NAME one of %s",
		       quote_str(&q, flag), names.data);
}

int engine_arg_check(const char *arg, struct err *err)
{
	AUTO_FREE char *flag = xstrndup(arg, strcspn(arg, "="));
	const char *const why = engine_option_refusal(flag);

	if (why)
		return err_set(err, ERR_UNSUPPORTED, "--engine-arg %s is refused: %s", flag, why);
	if (strncmp(flag, "--", 2) != 0 || !find_allowed(flag + 2, strlen(flag + 2)) ||
	    !arg[strlen(flag)] || !arg[strlen(flag) + 1])
		return refuse(flag, err);
	/* A sweep looks for these. */
	if (!strncmp(arg, "--label=postern.", strlen("--label=postern.")))
		return err_set(err, ERR_UNSUPPORTED,
			       "--engine-arg --label is refused: labels that begin with postern. "
			       "are the launcher's own");
	return 0;
}

const char *engine_arg_value(const struct strv *args, const char *name)
{
	const size_t len = strlen(name);
	const char *found = NULL;

	for (size_t i = 0; i < args->count; i++)
		if (!strncmp(args->items[i] + 2, name, len) && args->items[i][2 + len] == '=')
			found = args->items[i] + 2 + len + 1;
	return found;
}
