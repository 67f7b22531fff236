/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/emulator.h"

#include "broker/base/alloc.h"
#include "broker/base/strv.h"
#include "emulator/contents.h"
#include "emulator/guards.h"
#include "emulator/query.h"
#include "emulator/reply.h"
#include "emulator/routes.h"

#include <string.h>

struct emulator {
	struct strv accounts; /* every spelling of the account in a path */
	char *advertised_host;
	struct content *contents;
};

const char *emulator_route_name(enum emulator_route route)
{
	static const char *const names[EMULATOR_ROUTE_COUNT] = {
		[EMULATOR_ROUTE_NONE] = "none",
		[EMULATOR_ROUTE_DIRECTORY] = "directory",
		[EMULATOR_ROUTE_PROJECT_ID] = "project-id",
		[EMULATOR_ROUTE_PROJECT_NUMBER] = "numeric-project-id",
		[EMULATOR_ROUTE_UNIVERSE_DOMAIN] = "universe-domain",
		[EMULATOR_ROUTE_ACCOUNT] = "account",
		[EMULATOR_ROUTE_EMAIL] = "email",
		[EMULATOR_ROUTE_ALIASES] = "aliases",
		[EMULATOR_ROUTE_SCOPES] = "scopes",
		[EMULATOR_ROUTE_TOKEN] = "token",
	};

	return names[route];
}

const char *emulator_refusal_name(enum emulator_refusal refusal)
{
	static const char *const names[EMULATOR_REFUSAL_COUNT] = {
		[EMULATOR_REFUSAL_NONE] = "none",
		[EMULATOR_REFUSAL_MALFORMED] = "malformed",
		[EMULATOR_REFUSAL_BODY] = "body",
		[EMULATOR_REFUSAL_PEER] = "peer",
		[EMULATOR_REFUSAL_FORWARDED] = "forwarded",
		[EMULATOR_REFUSAL_HOST] = "host",
		[EMULATOR_REFUSAL_FLAVOR] = "flavor",
		[EMULATOR_REFUSAL_PATH] = "path",
		[EMULATOR_REFUSAL_METHOD] = "method",
	};

	return names[refusal];
}

/* "default", the email, and the email with its "@" as "%40": the one escape that is known. */
static void add_accounts(struct strv *accounts, const char *email)
{
	static const char alias[] = "default";
	const char *const at = strchrnul(email, '@');

	strv_add(accounts, alias, strlen(alias));
	strv_add(accounts, email, strlen(email));
	if (!*at)
		return;
	AUTO_FREE char *escaped = xasprintf("%.*s%%40%s", (int)(at - email), email, at + 1);
	strv_add(accounts, escaped, strlen(escaped));
}

struct emulator *emulator_new(const struct emulator_identity *identity)
{
	struct emulator *const emulator = xcalloc(1, sizeof(*emulator));

	add_accounts(&emulator->accounts, identity->email);
	if (identity->advertised_host)
		emulator->advertised_host = xstrdup(identity->advertised_host);
	emulator->contents = contents_new(identity);
	return emulator;
}

void emulator_free(struct emulator *emulator)
{
	if (!emulator)
		return;
	strv_deinit(&emulator->accounts);
	free(emulator->advertised_host);
	contents_free(emulator->contents);
	free(emulator);
}

/* Printable ASCII without "#". Other forms than the origin form (RFC 9112 section 3.2) match no route. */
static bool is_plain_target(const char *target, size_t len)
{
	unsigned char wrong = 0;

	/* All of it, for then the compiler looks at many bytes at once. */
	for (size_t i = 0; i < len; i++)
		wrong |= (target[i] < 0x21) | (target[i] > 0x7e) | (target[i] == '#');
	return len > 0 && !wrong;
}

static bool is_known_method(const char *method)
{
	return !strcmp(method, "GET") || !strcmp(method, "HEAD");
}

/* Finds what the target names in this identity's table; its query, if it has one, goes to `query`. */
static bool find(const struct emulator *emulator, const struct emulator_request *request,
		 size_t *index, struct query *query)
{
	const char *const target = request->target;
	size_t path_len = request->target_len;

	if (!is_plain_target(target, request->target_len))
		return false;
	const char *const mark = memchr(target, '?', request->target_len);
	if (mark) {
		path_len = (size_t)(mark - target);
		*query = query_parse(mark + 1, request->target_len - path_len - 1);
	}
	return route_find(target, path_len, &emulator->accounts, index) &&
	       emulator->contents[*index].served;
}

static struct emulator_reply content_reply(const struct content *content, bool json)
{
	const struct body *const body = json ? &content->json : &content->text;

	return (struct emulator_reply){
		.status = 200,
		.content_type = json ? reply_type_json : reply_type_text,
		.body = body->data,
		.body_len = body->len,
	};
}

bool emulator_answer(const struct emulator *emulator, const struct emulator_request *request,
		     struct emulator_reply *reply)
{
	struct query query = {0};
	size_t index;

	const enum emulator_refusal refusal = guards_check(request, emulator->advertised_host);
	if (refusal) {
		*reply = *reply_refusal(refusal);
		return true;
	}
	if (!find(emulator, request, &index, &query)) {
		*reply = *reply_refusal(EMULATOR_REFUSAL_PATH);
		return true;
	}
	const struct route *const route = route_at(index);
	if (!is_known_method(request->method)) {
		*reply = *reply_refusal(EMULATOR_REFUSAL_METHOD);
		reply->route = route->route;
		return true;
	}
	if (route->route == EMULATOR_ROUTE_TOKEN) {
		*reply = (struct emulator_reply){.route = EMULATOR_ROUTE_TOKEN};
		return false;
	}
	const bool json = route_is_directory(route) ? query.recursive : query.json;
	*reply = content_reply(&emulator->contents[index], json);
	reply->route = route->route;
	return true;
}
