/* SPDX-License-Identifier: Apache-2.0 */
/* Which entries of a kubeconfig are meant. */
#include "broker/base/alloc.h"
#include "broker/base/err.h"
#include "broker/base/log.h"
#include "sandbox/kubeconfig/kubeconfig.h"
#include "sandbox/kubeconfig/kubeconfig_impl.h"
#include "sandbox/kubeconfig/kubeconfig_yaml.h"

#include <string.h>

static const char *const list_names[KUBECONFIG_KINDS] = {
	[KUBECONFIG_CONTEXT] = "contexts",
	[KUBECONFIG_CLUSTER] = "clusters",
	[KUBECONFIG_USER] = "users",
};

static int refuse(const struct kubeconfig_reading *reading, unsigned line, const char *message)
{
	return err_set(reading->err, ERR_INVALID, "%s:%u: %s", reading->path, line, message);
}

static int refuse_list(const struct kubeconfig_reading *reading, enum kubeconfig_kind kind,
		       unsigned line, const char *message)
{
	return err_set(reading->err, ERR_INVALID, "%s:%u: %s %s", reading->path, line,
		       list_names[kind], message);
}

static int compare_names(const void *a, const void *b)
{
	const struct yaml_value *const left = *(const struct yaml_value *const *)a;
	const struct yaml_value *const right = *(const struct yaml_value *const *)b;
	const int order = strcmp(left->text, right->text);

	if (order)
		return order;
	return left->line < right->line ? -1 : left->line > right->line;
}

/* kubectl takes the first or the last of two, by its version. */
static int check_names(const struct kubeconfig_reading *reading, enum kubeconfig_kind kind,
		       const struct yaml_value *list)
{
	AUTO_FREE const struct yaml_value **names = xcalloc(list->count + 1, sizeof(*names));

	for (size_t i = 0; i < list->count; i++) {
		const struct yaml_value *const entry = &list->members[i].value;
		if (!yaml_get_text(entry, "name"))
			return refuse_list(reading, kind, entry->line,
					   "has an entry without a name; give it one");
		names[i] = yaml_get(entry, "name");
	}
	qsort(names, list->count, sizeof(*names), compare_names);
	for (size_t i = 1; i < list->count; i++)
		if (!strcmp(names[i - 1]->text, names[i]->text))
			return refuse_list(reading, kind, names[i]->line,
					   "has this name twice; rename or delete one of the two");
	return 0;
}

static int check_lists(const struct kubeconfig_reading *reading)
{
	for (enum kubeconfig_kind kind = 0; kind < KUBECONFIG_KINDS; kind++) {
		const struct yaml_value *const list = yaml_get(reading->root, list_names[kind]);
		if (yaml_is_empty(list))
			continue;
		if (list->kind != YAML_KIND_LIST)
			return refuse_list(reading, kind, list->line,
					   "is no list; each entry starts with \"- name:\"");
		if (check_names(reading, kind, list))
			return -1;
	}
	return 0;
}

static int check_head(const struct kubeconfig_reading *reading)
{
	static const struct {
		const char *key;
		const char *value;
		const char *otherwise;
	} heads[] = {
		{"apiVersion", "v1", "apiVersion must be v1"},
		{"kind", "Config", "kind must be Config; this is no kubeconfig"},
	};

	if (reading->root->kind != YAML_KIND_MAP)
		return refuse(reading, reading->root->line, "no kubeconfig: it must be a map");
	for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
		const struct yaml_value *const value = yaml_get(reading->root, heads[i].key);
		if (yaml_is_empty(value))
			continue;
		if (value->kind != YAML_KIND_TEXT || strcmp(value->text, heads[i].value) != 0)
			return refuse(reading, value->line, heads[i].otherwise);
	}
	return 0;
}

/* The entry of that name; its body is the map at the kind's own key. */
static int find(struct kubeconfig_reading *reading, enum kubeconfig_kind kind, const char *name,
		unsigned line)
{
	struct kubeconfig_entry *const found = &reading->entries[kind];
	const struct yaml_value *const list = yaml_get(reading->root, list_names[kind]);

	*found = (struct kubeconfig_entry){.name = name, .line = line};
	for (size_t i = 0; list && i < list->count; i++) {
		const struct yaml_value *const entry = &list->members[i].value;
		if (strcmp(yaml_get_text(entry, "name"), name) != 0)
			continue;
		found->line = entry->line;
		found->body = yaml_get(entry, kubeconfig_kind_name(kind));
		if (!found->body || found->body->kind != YAML_KIND_MAP)
			return kubeconfig_refuse(reading, kind, entry->line,
						 "has no content; complete it or choose another "
						 "with --context");
		return 0;
	}
	return kubeconfig_refuse(reading, kind, line,
				 "is not in the file; choose a context whose cluster and user are "
				 "there with --context");
}

/* The cluster or user that the context names. */
static int follow(struct kubeconfig_reading *reading, enum kubeconfig_kind kind)
{
	const struct kubeconfig_entry *const context = &reading->entries[KUBECONFIG_CONTEXT];
	const struct yaml_value *const name = yaml_get(context->body, kubeconfig_kind_name(kind));

	if (yaml_is_empty(name) || name->kind != YAML_KIND_TEXT)
		return kubeconfig_refuse(reading, KUBECONFIG_CONTEXT, context->line,
					 kind == KUBECONFIG_USER ?
						 "names no user; choose another with --context" :
						 "names no cluster; choose another with --context");
	return find(reading, kind, name->text, name->line);
}

int kubeconfig_select(struct kubeconfig_reading *reading)
{
	if (check_head(reading) || check_lists(reading))
		return -1;
	const char *name = reading->options->context;
	unsigned line = 1;
	if (!name) {
		name = yaml_get_text(reading->root, "current-context");
		if (!name)
			return refuse(reading, 1, "has no current context; pass --context");
		line = yaml_get(reading->root, "current-context")->line;
	}
	if (find(reading, KUBECONFIG_CONTEXT, name, line) || follow(reading, KUBECONFIG_CLUSTER) ||
	    follow(reading, KUBECONFIG_USER))
		return -1;
	return 0;
}
