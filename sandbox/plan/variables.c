/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/plan/variables.h"

#include "broker/base/alloc.h"
#include "broker/base/parse.h"
#include "broker/base/secret.h"

#include <string.h>

#define MAX_NAME_BYTES 256

static const char *const source_names[] = {
	[VARIABLE_SESSION] = "session", [VARIABLE_PRESET] = "preset", [VARIABLE_CALLER] = "caller",
	[VARIABLE_FIXED] = "fixed",	[VARIABLE_UNSET] = "unset",   [VARIABLE_CLIENT] = "client",
};

void variables_deinit(struct variables *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->items[i].name);
		secret_unref(list->items[i].value);
	}
	free(list->items);
	*list = (struct variables){0};
}

struct variable *variables_find(const struct variables *list, const char *name)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->items[i].name, name))
			return &list->items[i];
	return NULL;
}

void variables_set(struct variables *list, const char *name, enum variable_source source,
		   const char *value)
{
	struct variable *variable = variables_find(list, name);

	if (!variable) {
		list->items = xreallocarray(list->items, list->count + 1, sizeof(*list->items));
		variable = &list->items[list->count++];
		*variable = (struct variable){.name = xstrdup(name)};
	}
	struct secret *const held = variable->value;
	variable->source = source;
	variable->value = value ? secret_new(value, strlen(value)) : NULL;
	secret_unref(held);
}

const char *variable_source_name(enum variable_source source)
{
	return source_names[source];
}

bool variable_name_valid(const char *name)
{
	return text_is_of(name, "_") && !(*name >= '0' && *name <= '9') &&
	       strlen(name) <= MAX_NAME_BYTES;
}

void environ_block_deinit(struct environ_block *block)
{
	for (size_t i = 0; i < block->count; i++) {
		explicit_bzero(block->items[i], strlen(block->items[i]));
		free(block->items[i]);
	}
	free(block->items);
	*block = (struct environ_block){0};
}

void environ_block_add(struct environ_block *block, const struct variables *list,
		       const struct variables *except)
{
	block->items = xreallocarray(block->items, block->count + list->count + 1, sizeof(char *));
	for (size_t i = 0; i < list->count; i++) {
		const struct variable *const variable = &list->items[i];
		if (variable->value && !(except && variables_find(except, variable->name)))
			block->items[block->count++] =
				xasprintf("%s=%s", variable->name, secret_bytes(variable->value));
	}
	block->items[block->count] = NULL;
}
