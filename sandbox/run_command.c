/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `postern run`: from arguments to a plan, and from the plan to its print or its run.
 */
#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/base/clock.h"
#include "broker/base/err.h"
#include "broker/base/json.h"
#include "broker/base/random.h"
#include "broker/base/secret.h"
#include "broker/net/loop.h"
#include "sandbox/client/broker_client.h"
#include "sandbox/client/notice.h"
#include "sandbox/commands.h"
#include "sandbox/kubeconfig/kubeconfig.h"
#include "sandbox/plan/caller.h"
#include "sandbox/plan/environment.h"
#include "sandbox/plan/mounts.h"
#include "sandbox/plan/nameservers.h"
#include "sandbox/plan/options.h"
#include "sandbox/plan/plan.h"
#include "sandbox/profile_choice.h"
#include "sandbox/run/door_binary.h"
#include "sandbox/run/engine.h"
#include "sandbox/run/firewall.h"
#include "sandbox/run/run.h"
#include "sandbox/run/run_dir.h"
#include "sandbox/run/sweep.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PRINT_MAX_BYTES ((size_t)64 << 20)

/* Everything that a run is made of, released together. */
struct preparation {
	const struct invocation *invocation;
	struct run_options options;
	struct loop *loop;
	struct broker_client *client;
	json_t *status; /* of the broker */
	struct profile_choice profile;
	struct engine *engine;
	struct engine_call *left_overs; /* being looked for; NULL: not wanted */
	struct kubeconfig *kubeconfig;
	char *api_server_host;
	char *control;		 /* the broker's socket */
	char *door_binary;	 /* NULL: no door is wanted */
	struct strv nameservers; /* of this host, where one is */
	char *base;
	char *directory;
	char run_id[PLAN_RUN_ID_DIGITS + 1];
	struct plan *plan;
};

static void release(struct preparation *p)
{
	plan_free(p->plan);
	kubeconfig_free(p->kubeconfig);
	engine_call_cancel(p->left_overs);
	engine_free(p->engine);
	json_decref(p->status);
	broker_client_free(p->client);
	loop_free(p->loop);
	run_options_deinit(&p->options);
	free(p->api_server_host);
	free(p->control);
	free(p->door_binary);
	strv_deinit(&p->nameservers);
	free(p->base);
	free(p->directory);
}

static int print_help(void)
{
	AUTO_BUF struct buf text;

	buf_init(&text, (size_t)16 << 10);
	run_options_help(&text);
	return command_say(&text);
}

/* The command as it is, with the environment as it is. */
static int run_unsandboxed(const struct preparation *p)
{
	char *const *const command = p->options.command;

	notice("no sandbox: the command runs with everything that this user has");
	(void)setrlimit(RLIMIT_CORE, &p->invocation->caller->core);
	(void)execvpe(command[0], command, p->invocation->caller->environ);
	const int error = errno;
	notice("%s: %s", command[0], strerror(error));
	return error == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
}

/* HOST of "https://HOST[:PORT][/…]"; NULL where there is none. The caller's. */
static char *host_of(const char *server)
{
	const char *const host = server ? strstr(server, "://") : NULL;

	if (!host)
		return NULL;
	if (host[3] == '[')
		return xstrndup(host + 4, strcspn(host + 4, "]"));
	return xstrndup(host + 3, strcspn(host + 3, ":/"));
}

/* Whoever wrote the kubeconfig may be somebody else: it names no login of this user's. */
static int check_token_files(const struct preparation *p, struct err *err)
{
	const struct mount_guard guard = {.caller = p->invocation->caller};

	for (size_t i = 0; i < p->kubeconfig->token_file_count; i++)
		if (mount_is_login(p->kubeconfig->token_files[i].source, &guard))
			return err_set(
				err, ERR_UNSUPPORTED,
				"the kubeconfig has a tokenFile that lies in cloud or login "
				"credentials, which may not cross; write the cluster's own token "
				"to a file elsewhere");
	return 0;
}

static int read_kubeconfig(struct preparation *p, struct err *err)
{
	const struct kubeconfig_options options = {
		.context = p->options.context,
		.loopback_host = PLAN_HOST_ALIAS,
		.creds_dir = PLAN_CREDS,
		.allow_admin = p->options.allow_admin_kubeconfig,
		.timeout_s = p->options.timeout_s,
		.clock = clock_system(),
	};

	if (!p->options.kubeconfig)
		return 0;
	if (kubeconfig_reduce(p->options.kubeconfig, &options, &p->kubeconfig, err) ||
	    check_token_files(p, err))
		return -1;
	const struct secret *const json = p->kubeconfig->json;
	json_auto_t *file = json_read_object(secret_bytes(json), secret_len(json));
	const json_t *const cluster =
		json_object_get(json_array_get(json_object_get(file, "clusters"), 0), "cluster");
	p->api_server_host = host_of(json_get_string(cluster, "server"));
	return 0;
}

/* Returns the exit status. */
static int ask_broker(struct preparation *p, const struct provider *provider, struct err *err)
{
	static const struct broker_question question = {"GET", "/v1/status", NULL};
	if (broker_client_new(p->loop, p->control, &p->client, err))
		return STATUS_FAILED;
	const int status = broker_client_ask(p->client, &question, &p->status, err);
	if (status)
		return status;
	return profile_choose(p->status, p->options.profile, provider, &p->profile, err);
}

/* The network that has to be looked at; NULL: what it is is known. */
static const char *network_to_ask(const struct run_options *options)
{
	const char *const network = options->network;
	const bool is_known = !network || !strcmp(network, "none") || !strcmp(network, "default");

	return is_known ? NULL : network;
}

/* Returns the exit status. */
static int ask_engine(struct preparation *p, bool session, struct err *err)
{
	const struct caller *const caller = p->invocation->caller;
	const char *const search = caller_nonblank(caller, "PATH");
	AUTO_ENVIRON_BLOCK struct environ_block block = {0};
	AUTO_VARIABLES struct variables variables = {0};

	/* Neither exists yet, which is what the client is to find there: nothing. */
	environment_client(p->options.engine, caller, p->directory, p->directory, &variables);
	environ_block_add(&block, &variables, NULL);
	if (engine_new(p->loop, p->options.engine, search ? search : "", &block, &p->engine, err))
		return STATUS_ENGINE;
	if (!p->options.dry_run) {
		AUTO_FREE char *owner = plan_owner(&p->options, caller);
		p->left_overs = sweep_look(p->engine, owner);
	}
	if (engine_probe(p->engine, p->options.image, session ? network_to_ask(&p->options) : NULL,
			 err))
		return STATUS_ENGINE;
	return STATUS_OK;
}

static int make_plan(struct preparation *p, struct err *err)
{
	struct plan_inputs inputs = {
		.options = &p->options,
		.caller = p->invocation->caller,
		.engine = engine_facts(p->engine),
		.profile = p->profile.name,
		.project = p->profile.project,
		.location = p->profile.location,
		.api_server_host = p->api_server_host,
		.control = p->control,
		.door_binary = p->door_binary,
		.nameservers = &p->nameservers,
		.run_id = p->run_id,
		.directory = p->directory,
	};

	sweep_name_self(&inputs.launcher);
	return plan_new(&inputs, &p->plan, err);
}

static void say_warnings(const struct preparation *p)
{
	AUTO_BUF struct buf refused;

	if (p->kubeconfig)
		for (size_t i = 0; i < p->kubeconfig->warnings.count; i++)
			notice("%s", p->kubeconfig->warnings.items[i]);
	for (size_t i = 0; i < p->plan->warnings.count; i++)
		notice("%s", p->plan->warnings.items[i]);
	buf_init(&refused, PRINT_MAX_BYTES);
	plan_print_refused(p->plan, &refused);
	if (refused.len > 0)
		notice("%s", refused.data);
}

static int print_plan(const struct preparation *p)
{
	AUTO_BUF struct buf text;

	buf_init(&text, PRINT_MAX_BYTES);
	if (p->options.json)
		plan_print_json(p->plan, &text);
	else
		plan_print(p->plan, &text);
	return command_say(&text);
}

static int execute(struct preparation *p, struct err *err)
{
	const struct run_inputs inputs = {
		.loop = p->loop,
		.engine = p->engine,
		.client = p->client,
		.kubeconfig = p->kubeconfig,
		.plan = p->plan,
		.base = p->base,
	};

	/* A door keeps its sandbox from the host's metadata server by itself. */
	if (p->plan->session.wanted && !p->plan->door.wanted &&
	    !p->options.allow_unverified_firewall && firewall_verified(p->loop, err))
		return command_fail_as(STATUS_CHECK, err);
	sweep_finish(p->engine, TAKE(p->left_overs));
	return run_execute(&inputs);
}

/* Returns the exit status; what is wrong was said. */
static int prepare(struct preparation *p)
{
	const struct caller *const caller = p->invocation->caller;
	const struct provider *provider;
	struct err err;
	bool wanted;

	random_hex(p->run_id, sizeof(p->run_id));
	p->control = control_path(caller,
				  p->options.control ? p->options.control : p->invocation->control);
	p->base = run_dir_base(caller);
	p->directory = xasprintf("%s/%s", p->base, p->run_id);
	if (plan_wants_session(&p->options, caller, &wanted, &provider, &err) ||
	    read_kubeconfig(p, &err) || loop_new(&p->loop, &err))
		return command_fail(&err);
	const bool inside = wanted && p->options.attach == ATTACH_INSIDE;
	if (inside && door_binary_find(&p->door_binary, &err))
		return command_fail(&err);
	if (inside)
		nameservers_of_host(&p->nameservers);
	int status = ask_engine(p, wanted, &err);
	if (!status && wanted)
		status = ask_broker(p, provider, &err);
	if (status)
		return command_fail_as(status, &err);
	if (make_plan(p, &err))
		return command_fail(&err);
	say_warnings(p);
	return p->options.dry_run ? print_plan(p) : execute(p, &err);
}

int run_command(const struct invocation *invocation)
{
	struct preparation p = {.invocation = invocation};
	struct err err;
	int status;

	if (run_options_parse(&p.options, invocation->argc, invocation->argv, &err))
		status = command_fail(&err);
	else if (p.options.help)
		status = print_help();
	else if (p.options.engine == ENGINE_NONE)
		status = run_unsandboxed(&p);
	else
		status = prepare(&p);
	release(&p);
	return status;
}
