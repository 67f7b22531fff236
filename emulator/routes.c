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
#define ACCOUNT ACCOUNTS ROUTE_ACCOUNT

#define AT(text, ...) {text, sizeof(text) - 1, false, __VA_ARGS__}
#define AT_ACCOUNT(text, ...) {ACCOUNT text, sizeof(ACCOUNT text) - 1, true, __VA_ARGS__}

static const struct route table[] = {
	AT("/", EMULATOR_ROUTE_DIRECTORY, NULL),
	AT("/computeMetadata/", EMULATOR_ROUTE_DIRECTORY, NULL),
	AT(V1, EMULATOR_ROUTE_DIRECTORY, NULL),
	AT(V1 "instance/", EMULATOR_ROUTE_DIRECTORY, NULL),
	AT(ACCOUNTS, EMULATOR_ROUTE_DIRECTORY, NULL),
	AT_ACCOUNT("/", EMULATOR_ROUTE_ACCOUNT, NULL),
	AT_ACCOUNT("/aliases", EMULATOR_ROUTE_ALIASES, value_aliases),
	AT_ACCOUNT("/email", EMULATOR_ROUTE_EMAIL, value_email),
	AT_ACCOUNT("/scopes", EMULATOR_ROUTE_SCOPES, value_scopes),
	AT_ACCOUNT("/token", EMULATOR_ROUTE_TOKEN, NULL),
	AT(V1 "project/", EMULATOR_ROUTE_DIRECTORY, NULL),
	AT(V1 "project/numeric-project-id", EMULATOR_ROUTE_PROJECT_NUMBER, value_project_number),
	AT(V1 "project/project-id", EMULATOR_ROUTE_PROJECT_ID, value_project),
	AT(V1 "universe/", EMULATOR_ROUTE_DIRECTORY, NULL),
	AT(V1 "universe/universe-domain", EMULATOR_ROUTE_UNIVERSE_DOMAIN, value_universe),
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
	return route->path[route->path_len - 1] == '/';
}

const char *route_name_in(const struct route *child, const struct route *parent)
{
	if (!route_is_directory(parent) ||
	    strncmp(child->path, parent->path, parent->path_len) != 0)
		return NULL;
	const char *const name = child->path + parent->path_len;
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

/* True where the path is an account's or below it; then it is cut to what stands behind the account. */
static bool cut_account(const char **path, size_t *len, const struct strv *accounts)
{
	const size_t head_len = sizeof(ACCOUNTS) - 1;

	if (*len < head_len || memcmp(*path, ACCOUNTS, head_len) != 0)
		return false;
	const char *const segment = *path + head_len;
	const char *const slash = memchr(segment, '/', *len - head_len);
	const size_t segment_len = slash ? (size_t)(slash - segment) : *len - head_len;
	if (!is_account(segment, segment_len, accounts))
		return false;
	*path = segment + segment_len;
	*len -= head_len + segment_len;
	return true;
}

static bool matches(const struct route *route, const char *path, size_t len)
{
	const size_t cut_len = route->of_account ? sizeof(ACCOUNT) - 1 : 0;
	const char *const rest = route->path + cut_len;
	const size_t rest_len = route->path_len - cut_len;

	/* Only a directory may lack its last byte: Node asks "instance", gsutil "service-accounts". */
	const bool lacks_slash = len + 1 == rest_len && rest[len] == '/';
	return (len == rest_len || lacks_slash) && !memcmp(path, rest, len);
}

bool route_find(const char *path, size_t len, const struct strv *accounts, size_t *index)
{
	/* The empty path would be "/" without its slash. */
	if (!len)
		return false;
	const bool of_account = cut_account(&path, &len, accounts);
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		if (table[i].of_account != of_account || !matches(&table[i], path, len))
			continue;
		*index = i;
		return true;
	}
	return false;
}
