/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What --dry-run shows: names, never a value.
 */
#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/base/log.h"
#include "sandbox/plan/environment.h"
#include "sandbox/plan/plan.h"
#include "sandbox/plan/providers.h"

#include <jansson.h>
#include <string.h>

/* As a shell takes it back: quoted where it has to be. */
static void print_word(struct buf *out, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_-./:=,@%+";

	if (*word && !word[strspn(word, plain)]) {
		buf_add(out, word);
		return;
	}
	buf_add(out, "'");
	for (; *word; word++) {
		if (*word == '\'')
			buf_add(out, "'\\''");
		else
			buf_add_bytes(out, word, 1);
	}
	buf_add(out, "'");
}

static void print_line(struct buf *out, const char *key, const char *value)
{
	if (value)
		buf_addf(out, "%-12s %s\n", key, value);
}

static const char *session_text(const struct plan *plan)
{
	return plan->session.wanted ? plan->session.profile : "none: no session is opened";
}

static void print_head(const struct plan *plan, struct buf *out)
{
	print_line(out, "engine", engine_kind_name(plan->engine.kind));
	print_line(out, "version", plan->engine.version);
	print_line(out, "profile", session_text(plan));
	print_line(out, "provider", plan->provider ? plan->provider->name : NULL);
	print_line(out, "agent", plan->agent);
	print_line(out, "image", plan->image);
	print_line(out, "name", plan->name);
	print_line(out, "owner", plan->owner);
	print_line(out, "user", plan->user);
	print_line(out, "network", plan->network ? plan->network : "the engine's default");
	print_line(out, "attach", plan->session.wanted ? attach_name(plan->attach) : NULL);
	print_line(out, "preflight", plan->session.wanted ? preflight_name(plan->preflight) : NULL);
	if (plan->timeout_s)
		buf_addf(out, "%-12s %llds\n", "timeout", (long long)plan->timeout_s);
}

static void print_vector(struct buf *out, const char *title, const struct strv *argv)
{
	if (!argv->count)
		return;
	buf_addf(out, "\n%s\n", title);
	for (size_t i = 0; i < argv->count; i++) {
		buf_add(out, "  ");
		print_word(out, argv->items[i]);
		buf_add(out, "\n");
	}
}

void plan_print(const struct plan *plan, struct buf *out)
{
	print_head(plan, out);
	print_vector(out, "pull", &plan->pull);
	print_vector(out, "door argv", &plan->door.argv);
	print_vector(out, "argv", &plan->argv);
	print_vector(out, "start argv", &plan->start_argv);
	buf_add(out, "\nvariables\n");
	for (size_t i = 0; i < plan->container.count; i++)
		buf_addf(out, "  %-8s %s\n", variable_source_name(plan->container.items[i].source),
			 plan->container.items[i].name);
	buf_add(out, "\nmounts\n");
	for (size_t i = 0; i < plan->mount_count; i++) {
		const struct plan_mount *const mount = &plan->mounts[i];
		buf_addf(out, "  %s %s -> %s (%s)\n", mount->ro ? "ro" : "rw", mount->src,
			 mount->dst, mount->why);
	}
	if (!plan->mount_count)
		buf_add(out, "  none\n");
	if (plan->refused.count) {
		buf_add(out, "\n");
		plan_print_refused(plan, out);
		buf_add(out, "\n");
	}
	for (size_t i = 0; i < plan->warnings.count; i++)
		buf_addf(out, "%swarning: %s\n", i ? "" : "\n", plan->warnings.items[i]);
}

void plan_print_refused(const struct plan *plan, struct buf *out)
{
	environment_refused(&plan->refused, out);
}

static json_t *text_or_null(const char *text)
{
	struct quoted q;

	if (!text)
		return json_null();
	/* Bytes of a command or a path need not be UTF-8; such a text is shown escaped. */
	json_t *const string = json_string(text);
	return string ? string : json_string(quote_str(&q, text));
}

static json_t *list_of(const struct strv *list)
{
	json_t *const array = json_array();

	for (size_t i = 0; i < list->count; i++)
		json_array_append_new(array, text_or_null(list->items[i]));
	return array;
}

static json_t *variables_of(const struct variables *list)
{
	json_t *const array = json_array();

	for (size_t i = 0; i < list->count; i++)
		json_array_append_new(array,
				      json_pack("{s:s, s:s}", "name", list->items[i].name, "source",
						variable_source_name(list->items[i].source)));
	return array;
}

static json_t *mounts_of(const struct plan *plan)
{
	json_t *const array = json_array();

	for (size_t i = 0; i < plan->mount_count; i++) {
		const struct plan_mount *const mount = &plan->mounts[i];
		json_array_append_new(array, json_pack("{s:o, s:o, s:b, s:s}", "src",
						       text_or_null(mount->src), "dst",
						       text_or_null(mount->dst), "ro", mount->ro,
						       "why", mount->why));
	}
	return array;
}

static json_t *list_or_null(const struct strv *list)
{
	return list->count ? list_of(list) : json_null();
}

static json_t *door_of(const struct plan *plan)
{
	const struct plan_door *const door = &plan->door;

	if (!door->wanted)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o}", "name", text_or_null(door->name), "argv",
			 list_of(&door->argv), "shut", list_of(&door->shut), "nameservers",
			 list_of(&door->nameservers));
}

static json_t *session_of(const struct plan *plan)
{
	if (!plan->session.wanted)
		return json_null();
	return json_pack("{s:s, s:s, s:s, s:o}", "profile", plan->session.profile, "attach",
			 attach_name(plan->attach), "preflight", preflight_name(plan->preflight),
			 "ttl_s",
			 plan->session.ttl_s ? json_integer(plan->session.ttl_s) : json_null());
}

void plan_print_json(const struct plan *plan, struct buf *out)
{
	const struct {
		const char *key;
		json_t *value;
	} members[] = {
		{"engine", text_or_null(engine_kind_name(plan->engine.kind))},
		{"version", text_or_null(plan->engine.version)},
		{"session", session_of(plan)},
		{"provider", text_or_null(plan->provider ? plan->provider->name : NULL)},
		{"agent", text_or_null(plan->agent)},
		{"image", text_or_null(plan->image)},
		{"command", list_of(&plan->command)},
		{"name", text_or_null(plan->name)},
		{"owner", text_or_null(plan->owner)},
		{"user", text_or_null(plan->user)},
		{"network", text_or_null(plan->network)},
		{"timeout_s", plan->timeout_s ? json_integer(plan->timeout_s) : json_null()},
		{"pull", list_or_null(&plan->pull)},
		{"door", door_of(plan)},
		{"argv", list_of(&plan->argv)},
		{"start_argv", list_or_null(&plan->start_argv)},
		{"variables", variables_of(&plan->container)},
		{"client_variables", variables_of(&plan->client)},
		{"mounts", mounts_of(plan)},
		{"refused", list_of(&plan->refused)},
		{"warnings", list_of(&plan->warnings)},
	};
	json_auto_t *object = json_object();

	for (size_t i = 0; i < ARRAY_LEN(members); i++)
		json_object_set_new(object, members[i].key, members[i].value);
	AUTO_FREE char *text = json_dumps(object, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
	buf_add(out, text);
	buf_add(out, "\n");
}
