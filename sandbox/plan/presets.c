/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/plan/presets.h"

#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/base/err.h"
#include "broker/base/log.h"
#include "broker/base/secret.h"
#include "broker/base/strv.h"
#include "sandbox/plan/caller.h"
#include "sandbox/plan/variables.h"

#include <string.h>

#define MAX_PRESET_VARIABLES 6
#define BLANKS " \t\r\n"

/* Values that are worked out; any other text is the value itself. */
static const char value_project[] = "(project)";
static const char value_location[] = "(location)";

enum when {
	ALWAYS,
	IF_HOSTED,  /* the model is the cloud's */
	IF_SESSION, /* and there is no key */
};

struct preset_variable {
	const char *name;
	const char *value;
	enum when when;
};

struct preset {
	const char *name;
	const char *title;
	struct preset_variable variables[MAX_PRESET_VARIABLES];
};

#define PROJECT(name) {name, value_project, ALWAYS}
#define LOCATION(name) {name, value_location, ALWAYS}

/* facts: each agent's own sources and runs, see docs/sandbox.md */
static const struct preset table[] = {
	{"gemini-cli",
	 "Gemini CLI",
	 {{"GOOGLE_GENAI_USE_VERTEXAI", "true", IF_HOSTED},
	  PROJECT("GOOGLE_CLOUD_PROJECT"),
	  LOCATION("GOOGLE_CLOUD_LOCATION"),
	  {"GEMINI_CLI_TRUST_WORKSPACE", "true", ALWAYS}}},
	{"claude-code",
	 "Claude Code",
	 {{"CLAUDE_CODE_USE_VERTEX", "1", IF_HOSTED},
	  PROJECT("ANTHROPIC_VERTEX_PROJECT_ID"),
	  LOCATION("CLOUD_ML_REGION")}},
	{"openclaw",
	 "OpenClaw",
	 {PROJECT("GOOGLE_CLOUD_PROJECT"),
	  LOCATION("GOOGLE_CLOUD_LOCATION"),
	  {"GOOGLE_CLOUD_API_KEY", PRESET_KEY_MARKER, IF_SESSION},
	  {"ANTHROPIC_VERTEX_USE_GCP_METADATA", "1", IF_SESSION}}},
	{"antigravity",
	 "Antigravity CLI",
	 {{"AGY_ADC_AUTH", "true", IF_SESSION},
	  PROJECT("GOOGLE_CLOUD_PROJECT"),
	  LOCATION("GOOGLE_CLOUD_LOCATION")}},
	{"opencode",
	 "opencode",
	 {PROJECT("GOOGLE_CLOUD_PROJECT"), LOCATION("GOOGLE_CLOUD_LOCATION"),
	  LOCATION("GOOGLE_VERTEX_LOCATION")}},
	{"generic",
	 "any agent on the vendors' SDKs",
	 {{"GOOGLE_GENAI_USE_VERTEXAI", "true", IF_HOSTED},
	  PROJECT("GOOGLE_CLOUD_PROJECT"),
	  LOCATION("GOOGLE_CLOUD_LOCATION"),
	  PROJECT("ANTHROPIC_VERTEX_PROJECT_ID"),
	  LOCATION("CLOUD_ML_REGION")}},
};

static const char *const location_names[] = {"GOOGLE_CLOUD_LOCATION", "GCP_VERTEX_LOCATION"};
static const char *const project_names[] = {"GOOGLE_CLOUD_PROJECT", "GCP_PROJECT_ID",
					    "GCP_PROJECT"};

const char *preset_name_at(size_t i)
{
	return i < ARRAY_LEN(table) ? table[i].name : NULL;
}

const char *preset_title_at(size_t i)
{
	return i < ARRAY_LEN(table) ? table[i].title : NULL;
}

int preset_find(const char *name, const struct preset **out, struct err *err)
{
	struct quoted q;
	AUTO_BUF struct buf known;

	buf_init(&known, 1024);
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		buf_addf(&known, "%s%s", i ? ", " : "", table[i].name);
		if (strcmp(table[i].name, name) != 0)
			continue;
		*out = &table[i];
		return 0;
	}
	return err_set(err, ERR_USAGE, "--agent %s is no preset; known: %s", quote_str(&q, name),
		       known.data);
}

static bool applies(enum when when, const struct routing *routing)
{
	switch (when) {
	case ALWAYS:
		return true;
	case IF_HOSTED:
		return routing->hosted;
	case IF_SESSION:
		return routing->session;
	}
	return false;
}

static const char *value_of(const struct preset_variable *variable, const struct routing *routing)
{
	if (variable->value == value_project)
		return routing->project;
	if (variable->value == value_location)
		return routing->location;
	return variable->value;
}

/* Whether the caller's own value is there; a blank one is none. */
static bool is_set(const struct variables *list, const char *name)
{
	const struct variable *const found = variables_find(list, name);
	const char *const value = found && found->value ? secret_bytes(found->value) : "";

	return value[strspn(value, BLANKS)] != '\0';
}

void preset_apply(const struct preset *preset, const struct routing *routing, struct variables *out)
{
	for (size_t i = 0; i < MAX_PRESET_VARIABLES && preset->variables[i].name; i++) {
		const struct preset_variable *const variable = &preset->variables[i];
		const char *const value = value_of(variable, routing);
		if (value && applies(variable->when, routing) && !is_set(out, variable->name))
			variables_set(out, variable->name, VARIABLE_PRESET, value);
	}
}

/* Without the blanks around it. */
static char *stripped(const char *value)
{
	const char *const start = value + strspn(value, BLANKS);
	size_t len = strlen(start);

	while (len && strchr(BLANKS, start[len - 1]))
		len--;
	return xstrndup(start, len);
}

char *routing_location(const struct caller *caller, const char *of_profile)
{
	for (size_t i = 0; i < ARRAY_LEN(location_names); i++) {
		const char *const value = caller_nonblank(caller, location_names[i]);
		if (value)
			return stripped(value);
	}
	return xstrdup(of_profile && *of_profile ? of_profile : "global");
}

int routing_project(const struct caller *caller, const char *of_profile, const struct strv *names,
		    char **out, struct err *err)
{
	AUTO_FREE char *first = NULL;

	for (size_t i = 0; i < ARRAY_LEN(project_names); i++) {
		const char *const name = project_names[i];
		const char *const value = caller_nonblank(caller, name);
		if (!value || (names && !strv_contains(names, name)))
			continue;
		AUTO_FREE char *project = stripped(value);
		if (of_profile && strcmp(project, of_profile) != 0)
			return err_set(
				err, ERR_INVALID,
				"%s names another project than the profile, whose project is "
				"%s; unset it or choose another profile",
				name, of_profile);
		if (!first)
			first = TAKE(project);
	}
	*out = of_profile ? xstrdup(of_profile) : TAKE(first);
	return 0;
}
