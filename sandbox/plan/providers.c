/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/plan/providers.h"

#include "broker/base/buf.h"
#include "broker/base/err.h"
#include "broker/base/log.h"

#include <strings.h>

#define ALIASES(...)                     \
	.aliases = (const char *const[]) \
	{                                \
		__VA_ARGS__              \
	}
/* Its API key crosses by --env. */
#define BY_KEY(its_name, ...) {.name = its_name, .kind = PROVIDER_KEY, ALIASES(__VA_ARGS__)}
/* The broker's backend, and the variable of a key that it takes instead, or NULL. */
#define BY_SESSION(its_name, its_backend, its_key, ...) \
	{.name = its_name,                              \
	 .kind = PROVIDER_SESSION,                      \
	 .backend = its_backend,                        \
	 .key = its_key,                                \
	 ALIASES(__VA_ARGS__)}
#define WITHOUT_RECIPE(its_name, way_out, ...) \
	{.name = its_name, .kind = PROVIDER_NO_RECIPE, .repair = way_out, ALIASES(__VA_ARGS__)}

#define NO_BEDROCK                                                                                \
	"use anthropic-vertex, or anthropic with a key of its own (--env ANTHROPIC_API_KEY), or " \
	"let short-lived AWS keys of a role made for this cross by --env-force"

static const struct provider table[] = {
	BY_KEY("google", "gemini", NULL),
	BY_SESSION("google-vertex", "vertex", "GOOGLE_CLOUD_API_KEY", "google_vertex", NULL),
	BY_KEY("anthropic", "claude", NULL),
	BY_SESSION("anthropic-vertex", "vertex", NULL, "anthropic_vertex", NULL),
	WITHOUT_RECIPE("anthropic-bedrock", NO_BEDROCK, "anthropic_bedrock", NULL),
	BY_KEY("openai", NULL),
};

const struct provider *provider_table(size_t *count)
{
	*count = ARRAY_LEN(table);
	return table;
}

const char *provider_kind_text(enum provider_kind kind)
{
	switch (kind) {
	case PROVIDER_KEY:
		return "an API key, which crosses by --env; no session";
	case PROVIDER_SESSION:
		return "a session, no key";
	case PROVIDER_NO_RECIPE:
		return "refused: no recipe brings its credential into a sandbox";
	}
	return "";
}

static const struct provider *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		if (!strcasecmp(table[i].name, name))
			return &table[i];
		for (const char *const *alias = table[i].aliases; *alias; alias++)
			if (!strcasecmp(*alias, name))
				return &table[i];
	}
	return NULL;
}

static int refuse_unknown(const char *name, struct err *err)
{
	struct quoted q;
	AUTO_BUF struct buf known;

	buf_init(&known, 1024);
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		buf_addf(&known, "%s%s", i ? ", " : "", table[i].name);
	return err_set(err, ERR_USAGE, "unknown provider %s; known: %s", quote_str(&q, name),
		       known.data);
}

int provider_find(const char *name, const struct provider **out, struct err *err)
{
	const struct provider *const found = find(name);

	if (!found)
		return refuse_unknown(name, err);
	if (found->kind == PROVIDER_NO_RECIPE)
		return err_set(err, ERR_UNSUPPORTED,
			       "provider %s has no key and there is no recipe for it (no_recipe): "
			       "nothing can bring its credential into a sandbox; %s",
			       found->name, found->repair);
	*out = found;
	return 0;
}
