/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/plan/plan.h"

#include "broker/base/alloc.h"
#include "broker/base/err.h"
#include "broker/base/log.h"
#include "sandbox/plan/caller.h"
#include "sandbox/plan/environment.h"
#include "sandbox/plan/mounts.h"
#include "sandbox/plan/paths.h"
#include "sandbox/plan/plan_argv.h"
#include "sandbox/plan/plan_door.h"
#include "sandbox/plan/plan_flags.h"
#include "sandbox/plan/presets.h"
#include "sandbox/plan/providers.h"
#include "sandbox/plan/user.h"

#include <string.h>

#define MAX_OWNER_BYTES 128
/* A session outlives its run's timeout by this. */
#define TTL_BEYOND_TIMEOUT_S 60

static char *copy(const char *text)
{
	return text ? xstrdup(text) : NULL;
}

/* Whether the caller lets this variable cross with a real key in it. */
static bool key_crosses(const struct run_options *options, const struct caller *caller,
			const char *name)
{
	const char *const value = caller_nonblank(caller, name);

	return value && strcmp(value, PRESET_KEY_MARKER) != 0 &&
	       (strv_contains(&options->env, name) || strv_contains(&options->env_force, name));
}

int plan_wants_session(const struct run_options *options, const struct caller *caller, bool *wanted,
		       const struct provider **provider, struct err *err)
{
	const struct provider *found = NULL;
	const struct preset *preset = NULL;

	if (options->provider && provider_find(options->provider, &found, err))
		return -1;
	if (options->agent && preset_find(options->agent, &preset, err))
		return -1;
	*provider = found;
	*wanted = !found || (found->kind == PROVIDER_SESSION &&
			     !(found->key && key_crosses(options, caller, found->key)));
	return 0;
}

char *plan_owner(const struct run_options *options, const struct caller *caller)
{
	char *const owner =
		xstrndup(options->owner ? options->owner : caller->user, MAX_OWNER_BYTES);

	for (char *at = owner; *at; at++)
		if (!(*at >= '0' && *at <= '9') && !(*at >= 'A' && *at <= 'Z') &&
		    !(*at >= 'a' && *at <= 'z'))
			*at = '_';
	return owner;
}

static void name_things(struct plan *plan, const struct plan_inputs *in)
{
	plan->run_id = xstrdup(in->run_id);
	plan->owner = plan_owner(in->options, in->caller);
	plan->name = xasprintf("postern-%s-%s", plan->owner, plan->run_id);
	plan->directory = xstrdup(in->directory);
	plan->cidfile = path_join(plan->directory, "cid");
	plan->env_file = path_join(plan->directory, "environment");
	if (in->engine->kind == ENGINE_DOCKER)
		plan->client_config = path_join(plan->directory, "docker");
	plan->launcher = in->launcher;
}

static void copy_engine(struct engine_facts *to, const struct engine_facts *from)
{
	*to = *from;
	to->binary = copy(from->binary);
	to->version = copy(from->version);
	to->host_address = copy(from->host_address);
	to->image_user = copy(from->image_user);
	to->kernel = copy(from->kernel);
	to->runtime = copy(from->runtime);
	to->network_driver = copy(from->network_driver);
}

static void copy_choices(struct plan *plan, const struct run_options *options)
{
	plan->agent = copy(options->agent);
	plan->preflight = options->preflight;
	plan->attach = options->attach;
	plan->stdio = run_options_stdio(options);
	plan->timeout_s = options->timeout_s;
	plan->network = copy(options->network);
	plan->allow_unverified_firewall = options->allow_unverified_firewall;
	plan->image = xstrdup(options->image);
	for (char **arg = options->command; *arg; arg++)
		strv_add(&plan->command, *arg, strlen(*arg));
}

static int plan_session_of(struct plan *plan, const struct plan_inputs *in, struct err *err)
{
	if (plan_wants_session(in->options, in->caller, &plan->session.wanted, &plan->provider,
			       err))
		return -1;
	if (!plan->session.wanted)
		return 0;
	if (!in->profile)
		return err_set(err, ERR_INVALID, "no profile for the session");
	plan->session.profile = xstrdup(in->profile);
	plan->session.label = xstrdup(plan->name);
	plan->session.ttl_s = plan->timeout_s ? plan->timeout_s + TTL_BEYOND_TIMEOUT_S : 0;
	return 0;
}

static void add_mount(struct plan *plan, const char *src, const char *dst, bool ro, const char *why)
{
	plan->mounts = xreallocarray(plan->mounts, plan->mount_count + 1, sizeof(*plan->mounts));
	plan->mounts[plan->mount_count++] = (struct plan_mount){
		.src = xstrdup(src),
		.dst = xstrdup(dst),
		.ro = ro,
		.why = why,
	};
}

static int add_workspace(struct plan *plan, const struct plan_inputs *in,
			 const struct mount_guard *guard, struct err *err)
{
	AUTO_FREE char *src = NULL;
	struct user_ids ids;
	struct quoted q;

	if (!in->options->workspace)
		return 0;
	if (mount_check_source(in->options->workspace, guard, "--workspace", &src, err))
		return -1;
	if (!path_is_directory(src))
		return err_set(err, ERR_INVALID, "--workspace %s: must be a directory",
			       quote_str(&q, src));
	add_mount(plan, src, PLAN_WORKSPACE, false, "workspace");
	plan->home_to_make = path_join(src, "home");
	const bool is_known = !user_ids_parse(plan->user, &ids, err);
	plan->home_uid = is_known ? ids.uid : (uid_t)-1;
	plan->home_gid = is_known ? ids.gid : (gid_t)-1;
	return 0;
}

static int refuse_twice(const struct plan *plan, const char *dst, struct err *err)
{
	struct quoted q;
	const bool is_home = !plan->home_to_make && !strcmp(dst, PLAN_HOME);

	for (size_t i = 0; i < plan->mount_count; i++)
		if (is_home || !strcmp(plan->mounts[i].dst, dst))
			return err_set(err, ERR_USAGE,
				       "--mount: two things at %s; choose another destination",
				       quote_str(&q, dst));
	return 0;
}

static int add_asked_mounts(struct plan *plan, const struct plan_inputs *in,
			    const struct mount_guard *guard, struct err *err)
{
	for (size_t i = 0; i < in->options->mounts.count; i++) {
		CLEANUP(mount_request_deinit) struct mount_request request = {0};
		AUTO_FREE char *src = NULL;
		if (mount_parse(in->options->mounts.items[i], &request, err) ||
		    refuse_twice(plan, request.dst, err) ||
		    mount_check_source(request.src, guard, "--mount", &src, err))
			return -1;
		add_mount(plan, src, request.dst, request.ro, "--mount");
	}
	return 0;
}

static int add_mounts(struct plan *plan, const struct plan_inputs *in, struct err *err)
{
	AUTO_FREE char *runs = path_parent(plan->directory);
	const struct mount_guard guard = {
		.caller = in->caller,
		.control = in->control,
		.kubeconfig = in->options->kubeconfig,
		.runs = runs,
	};

	if (add_workspace(plan, in, &guard, err))
		return -1;
	plan->kubeconfig = in->api_server_host != NULL;
	if (plan->kubeconfig) {
		AUTO_FREE char *creds = path_join(plan->directory, "creds");
		add_mount(plan, creds, PLAN_CREDS, true, "kubeconfig");
	}
	return add_asked_mounts(plan, in, &guard, err);
}

static int add_preset(struct plan *plan, const struct plan_inputs *in, struct err *err)
{
	AUTO_FREE char *location = routing_location(in->caller, in->location);
	AUTO_FREE char *project = NULL;
	AUTO_STRV struct strv crossing = {0};
	const struct preset *preset = NULL;

	strv_copy(&crossing, &in->options->env);
	strv_copy(&crossing, &in->options->env_force);
	if (routing_project(in->caller, plan->session.wanted ? in->project : NULL,
			    in->options->agent ? NULL : &crossing, &project, err))
		return -1;
	if (!in->options->agent)
		return 0;
	if (preset_find(in->options->agent, &preset, err))
		return -1;
	const struct routing routing = {
		.project = project,
		.location = location,
		.hosted = plan->session.wanted || (plan->provider && plan->provider->backend),
		.session = plan->session.wanted,
	};
	preset_apply(preset, &routing, &plan->container);
	return 0;
}

/* By what the sandbox calls its endpoint. */
static void add_session_hosts(struct plan *plan)
{
	static const char *const gateway[] = {PLAN_HOST_ALIAS, NULL};
	static const char *const inside[] = {PLAN_METADATA_ADDRESS, PLAN_METADATA_NAME,
					     PLAN_METADATA_SHORT_NAME, NULL};

	if (!plan->session.wanted)
		return;
	for (const char *const *host = plan->door.wanted ? inside : gateway; *host; host++)
		strv_add(&plan->no_proxy, *host, strlen(*host));
}

static void add_no_proxy(struct plan *plan, const struct plan_inputs *in)
{
	add_session_hosts(plan);
	if (in->api_server_host && !strv_contains(&plan->no_proxy, in->api_server_host))
		strv_add(&plan->no_proxy, in->api_server_host, strlen(in->api_server_host));
	if (plan->no_proxy.count)
		environment_no_proxy(&plan->container, &plan->no_proxy,
				     plan->session.wanted ? VARIABLE_SESSION : VARIABLE_FIXED);
}

/* In this order: what comes later wins. */
static int add_variables(struct plan *plan, const struct plan_inputs *in, struct err *err)
{
	AUTO_STRV struct strv absent = {0};
	const char *name = NULL;

	environment_cross(in->options, in->caller, &plan->container, &plan->refused, &absent);
	for (size_t i = 0; i < absent.count; i++)
		plan_warn(plan, "--env %s: it is not set here, nothing crosses", absent.items[i]);
	if (add_preset(plan, in, err))
		return -1;
	add_no_proxy(plan, in);
	for (size_t i = 0; plan->session.wanted && (name = environment_session_name(i)); i++)
		if (!variables_find(&plan->container, name))
			variables_set(&plan->container, name, VARIABLE_SESSION, NULL);
	environment_unset(&plan->container);
	if (plan->kubeconfig)
		variables_set(&plan->container, "KUBECONFIG", VARIABLE_FIXED, PLAN_KUBECONFIG);
	variables_set(&plan->container, "HOME", VARIABLE_FIXED, PLAN_HOME);
	environment_client(plan->engine.kind, in->caller, plan->directory, plan->client_config,
			   &plan->client);
	return 0;
}

int plan_new(const struct plan_inputs *inputs, struct plan **out, struct err *err)
{
	AUTO_PLAN struct plan *plan = xcalloc(1, sizeof(*plan));

	if (inputs->options->tty && !inputs->options->dry_run && !inputs->caller->terminal)
		return err_set(
			err, ERR_USAGE,
			"--tty needs a terminal as standard input and output; without one use "
			"--interactive");
	copy_engine(&plan->engine, inputs->engine);
	name_things(plan, inputs);
	copy_choices(plan, inputs->options);
	if (plan_session_of(plan, inputs, err) || plan_add_door(plan, inputs, err) ||
	    user_choose(inputs->options, inputs->caller, plan->engine.image_user, &plan->user,
			err) ||
	    add_mounts(plan, inputs, err) || add_variables(plan, inputs, err) ||
	    plan_add_flags(plan, inputs->options, err))
		return -1;
	plan_render(plan);
	*out = TAKE(plan);
	return 0;
}

void plan_free(struct plan *plan)
{
	if (!plan)
		return;
	char *const texts[] = {
		plan->run_id,
		plan->name,
		plan->owner,
		plan->directory,
		plan->cidfile,
		plan->env_file,
		plan->env_file_text,
		plan->client_config,
		plan->home_to_make,
		plan->agent,
		plan->session.profile,
		plan->session.label,
		plan->session.id,
		plan->user,
		plan->network,
		plan->image,
		(char *)plan->engine.binary,
		(char *)plan->engine.version,
		(char *)plan->engine.host_address,
		(char *)plan->engine.image_user,
		(char *)plan->engine.kernel,
		(char *)plan->engine.runtime,
		(char *)plan->engine.network_driver,
		plan->door.name,
		plan->door.cidfile,
		plan->door.binary,
		plan->door.attach,
		plan->door.directory,
		plan->door.ticket,
		plan->door.id,
	};
	struct strv *const lists[] = {
		&plan->flags,	   &plan->no_proxy,
		&plan->refused,	   &plan->warnings,
		&plan->command,	   &plan->argv,
		&plan->start_argv, &plan->pull,
		&plan->door.flags, &plan->door.nameservers,
		&plan->door.shut,  &plan->door.argv,
	};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		free(texts[i]);
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		strv_deinit(lists[i]);
	for (size_t i = 0; i < plan->mount_count; i++) {
		free(plan->mounts[i].src);
		free(plan->mounts[i].dst);
	}
	free(plan->mounts);
	variables_deinit(&plan->container);
	variables_deinit(&plan->client);
	free(plan);
}
