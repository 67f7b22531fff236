/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/routes.h"

#include "broker/base/compiler.h"
#include "broker/base/parse.h"
#include "broker/base/strv.h"

#include <string.h>

/* NULL would say "not in the table"; here it means no memory, or text that is not UTF-8. */
static json_t *text_value(const char *text)
{
	json_t *const value = json_string(text);

	if (!value)
		abort();
	return value;
}

static json_t *list_value(char *const *items, size_t count)
{
	json_t *const list = json_array();

	for (size_t i = 0; i < count; i++)
		if (json_array_append_new(list, text_value(items[i])))
			abort();
	return list;
}

static json_t *value_aliases(const struct emulator_identity *identity)
{
	char name[] = "default";
	char *const aliases[] = {name};

	(void)identity;
	return list_value(aliases, ARRAY_LEN(aliases));
}

static json_t *value_email(const struct emulator_identity *identity)
{
	return text_value(identity->email);
}

static json_t *value_scopes(const struct emulator_identity *identity)
{
	return list_value(identity->scopes->items, identity->scopes->count);
}

static json_t *value_project(const struct emulator_identity *identity)
{
	return text_value(identity->project);
}

/* What is no number is not served: clients take a wrong one for true, and live with a 404. */
static json_t *value_project_number(const struct emulator_identity *identity)
{
	uint64_t number;

	if (!identity->project_number ||
	    parse_uint(identity->project_number, 1, INT64_MAX, &number))
		return NULL;
	return json_integer((json_int_t)number);
}

static json_t *value_universe(const struct emulator_identity *identity)
{
	return text_value(identity->universe_domain);
}

#define V1 "/computeMetadata/v1/"
#define ACCOUNTS V1 "instance/service-accounts/"
#define ACCOUNT ACCOUNTS ROUTE_ACCOUNT "/"

static const struct route table[] = {
	{"/", EMULATOR_ROUTE_DIRECTORY, NULL},
	{"/computeMetadata/", EMULATOR_ROUTE_DIRECTORY, NULL},
	{V1, EMULATOR_ROUTE_DIRECTORY, NULL},
	{V1 "instance/", EMULATOR_ROUTE_DIRECTORY, NULL},
	{ACCOUNTS, EMULATOR_ROUTE_DIRECTORY, NULL},
	{ACCOUNT, EMULATOR_ROUTE_ACCOUNT, NULL},
	{ACCOUNT "aliases", EMULATOR_ROUTE_ALIASES, value_aliases},
	{ACCOUNT "email", EMULATOR_ROUTE_EMAIL, value_email},
	{ACCOUNT "scopes", EMULATOR_ROUTE_SCOPES, value_scopes},
	{ACCOUNT "token", EMULATOR_ROUTE_TOKEN, NULL},
	{V1 "project/", EMULATOR_ROUTE_DIRECTORY, NULL},
	{V1 "project/numeric-project-id", EMULATOR_ROUTE_PROJECT_NUMBER, value_project_number},
	{V1 "project/project-id", EMULATOR_ROUTE_PROJECT_ID, value_project},
	{V1 "universe/", EMULATOR_ROUTE_DIRECTORY, NULL},
	{V1 "universe/universe-domain", EMULATOR_ROUTE_UNIVERSE_DOMAIN, value_universe},
};

size_t route_count(void)
{
	return ARRAY_LEN(table);
}

const struct route *route_at(size_t index)
{
	return &table[index];
}

bool route_is_directory(const struct route *route)
{
	return route->path[strlen(route->path) - 1] == '/';
}

const char *route_name_in(const struct route *child, const struct route *parent)
{
	const size_t parent_len = strlen(parent->path);

	if (!route_is_directory(parent) || strncmp(child->path, parent->path, parent_len) != 0)
		return NULL;
	const char *const name = child->path + parent_len;
	const char *const slash = strchrnul(name, '/');
	const bool direct = *name && (!slash[0] || !slash[1]);
	return direct ? name : NULL;
}

static bool is_account(const char *segment, size_t len, const struct strv *accounts)
{
	for (size_t i = 0; i < accounts->count; i++)
		if (strlen(accounts->items[i]) == len && !memcmp(accounts->items[i], segment, len))
			return true;
	return false;
}

static bool matches(const char *route, const char *path, size_t len, const struct strv *accounts)
{
	const char *const gap = strstr(route, ROUTE_ACCOUNT);

	if (gap) {
		const size_t head_len = (size_t)(gap - route);
		if (len < head_len || memcmp(path, route, head_len) != 0)
			return false;
		path += head_len;
		len -= head_len;
		const char *const slash = memchr(path, '/', len);
		const size_t segment_len = slash ? (size_t)(slash - path) : len;
		if (!is_account(path, segment_len, accounts))
			return false;
		path += segment_len;
		len -= segment_len;
		route = gap + strlen(ROUTE_ACCOUNT);
	}
	/* Only a directory may lack its last byte: Node asks "instance", gsutil "service-accounts". */
	const size_t route_len = strlen(route);
	const bool lacks_slash = len + 1 == route_len && route[len] == '/';
	return (len == route_len || lacks_slash) && !memcmp(path, route, len);
}

bool route_find(const char *path, size_t len, const struct strv *accounts, size_t *index)
{
	/* The empty path would be "/" without its slash. */
	if (!len)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		if (!matches(table[i].path, path, len, accounts))
			continue;
		*index = i;
		return true;
	}
	return false;
}
