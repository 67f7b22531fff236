/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/plan/plan_door.h"

#include "broker/base/alloc.h"
#include "broker/base/err.h"
#include "broker/base/log.h"
#include "sandbox/plan/door_ability.h"
#include "sandbox/plan/engine_args.h"
#include "sandbox/plan/paths.h"
#include "sandbox/plan/plan.h"
#include "sandbox/plan/plan_argv.h"
#include "sandbox/plan/shut.h"

#include <string.h>

/* What postern-door takes of them; resolvers use no more than three. */
#define MAX_NAMESERVERS 8

/*
 * What makes a door of any image: nothing of the image's own runs in it, not even its health check. The two
 * capabilities are dropped when it is set up. An answer to ARP for a shut address, or from the sandbox for
 * the metadata address, is what the two settings keep from counting.
 */
static const char *const confinement[] = {
	"--cap-drop=ALL",
	"--cap-add=NET_ADMIN",
	"--cap-add=NET_BIND_SERVICE",
	"--security-opt=no-new-privileges",
	"--read-only",
	"--user=0:0",
	"--workdir=/",
	"--no-healthcheck",
	"--entrypoint=" PLAN_DOOR_PROGRAM,
	"--log-driver=json-file",
	"--sysctl=net.ipv4.conf.all.rp_filter=1",
	"--sysctl=net.ipv4.conf.all.arp_ignore=1",
	"--add-host=" PLAN_METADATA_NAME ":" PLAN_METADATA_ADDRESS,
	"--add-host=" PLAN_METADATA_SHORT_NAME ":" PLAN_METADATA_ADDRESS,
};

/*
 * The image is pulled before the session opens, whose ticket is good for a minute. Without a word of the
 * caller's that is where it is not here.
 */
static void add_pull(struct plan *plan, const struct plan_inputs *in)
{
	const struct strv *const args = &in->options->engine_args;
	const char *const policy = engine_arg_value(args, "pull");
	const char *const platform = engine_arg_value(args, "platform");
	const bool if_missing = !policy || !strcmp(policy, "missing");

	if (if_missing ? in->engine->image_is_here : !strcmp(policy, "never"))
		return;
	strv_addf(&plan->pull, "%s", plan->engine.binary);
	strv_addf(&plan->pull, "pull");
	strv_addf(&plan->pull, "--quiet");
	if (platform)
		strv_addf(&plan->pull, "--platform=%s", platform);
	strv_addf(&plan->pull, "%s", plan->image);
}

int plan_add_door(struct plan *plan, const struct plan_inputs *in, struct err *err)
{
	struct plan_door *const door = &plan->door;
	struct quoted q;

	door->wanted = plan->session.wanted && plan->attach == ATTACH_INSIDE;
	if (!door->wanted)
		return !plan->session.wanted || plan->allow_unverified_firewall ?
			       0 :
			       gateway_check_ability(in->engine, plan->network, err);
	if (door_check_ability(in->engine, plan->network, err))
		return -1;
	if (!path_is_writable_in_options(in->door_binary))
		return err_set(err, ERR_INVALID,
			       "%s: engines cannot be told a path with commas, quotes or control "
			       "characters; install it elsewhere",
			       quote_str(&q, in->door_binary));
	door->binary = xstrdup(in->door_binary);
	door->name = xasprintf("%s-door", plan->name);
	door->cidfile = path_join(plan->directory, "door-cid");
	door->directory = path_join(plan->directory, "door");
	door->ticket = path_join(door->directory, "ticket");
	/* As a rule; the session says for certain. */
	door->attach = path_beside(in->control ? in->control : "", "private/attach");
	if (in->options->shut.count)
		strv_copy(&door->shut, &in->options->shut);
	else
		shut_default(&door->shut);
	if (in->nameservers)
		shut_keep_nameservers(&door->shut, in->nameservers, &door->nameservers);
	add_pull(plan, in);
	return 0;
}

static void add_mount(struct strv *argv, const char *src, const char *dst)
{
	strv_addf(argv, "--mount=type=bind,src=%s,dst=%s,readonly", src, dst);
}

void plan_render_door(struct plan *plan)
{
	struct plan_door *const door = &plan->door;
	struct strv *const argv = &door->argv;

	strv_deinit(argv);
	if (!door->wanted)
		return;
	strv_addf(argv, "%s", plan->engine.binary);
	strv_addf(argv, "create");
	strv_addf(argv, "--name=%s", door->name);
	plan_add_labels(plan, argv);
	strv_addf(argv, "--label=" PLAN_LABEL_ROLE "=door");
	strv_addf(argv, "--cidfile=%s", door->cidfile);
	for (size_t i = 0; i < ARRAY_LEN(confinement); i++)
		strv_add(argv, confinement[i], strlen(confinement[i]));
	strv_copy(argv, &door->flags);
	add_mount(argv, door->binary, PLAN_DOOR_PROGRAM);
	add_mount(argv, door->attach, PLAN_DOOR_ATTACH);
	add_mount(argv, door->directory, PLAN_DOOR_TICKET);
	strv_addf(argv, "%s", plan->image);
	for (size_t i = 0; i < door->shut.count; i++) {
		strv_addf(argv, "--shut");
		strv_addf(argv, "%s", door->shut.items[i]);
	}
	for (size_t i = 0; i < door->nameservers.count && i < MAX_NAMESERVERS; i++) {
		strv_addf(argv, "--dns");
		strv_addf(argv, "%s", door->nameservers.items[i]);
	}
}

int plan_bind_attach(struct plan *plan, const char *directory, struct err *err)
{
	struct quoted q;

	if (!path_is_normal(directory) || !path_is_writable_in_options(directory))
		return err_set(err, ERR_INVALID,
			       "the broker's attach directory %s is none that an engine can mount",
			       quote_str(&q, directory));
	free(plan->door.attach);
	plan->door.attach = xstrdup(directory);
	plan_render(plan);
	return 0;
}

void plan_bind_door(struct plan *plan, const char *id)
{
	free(plan->door.id);
	plan->door.id = xstrdup(id);
	plan_render(plan);
}
