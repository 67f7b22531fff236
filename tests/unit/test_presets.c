/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/plan/presets.h"

#include "broker/base/err.h"
#include "broker/base/secret.h"
#include "broker/base/strv.h"
#include "sandbox/plan/caller.h"
#include "sandbox/plan/variables.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct routing session = {
	.project = "my-project",
	.location = "global",
	.hosted = true,
	.session = true,
};

static void apply(const char *name, const struct routing *routing, struct variables *out)
{
	const struct preset *preset = NULL;
	struct err err = {0};

	assert_int_equal(preset_find(name, &preset, &err), 0);
	preset_apply(preset, routing, out);
}

static const char *value_of(const struct variables *list, const char *name)
{
	const struct variable *const found = variables_find(list, name);

	return found && found->value ? secret_bytes(found->value) : NULL;
}

static void assert_value(const struct variables *list, const char *name, const char *expected)
{
	const char *const value = value_of(list, name);

	if (!expected) {
		assert_null(value);
		return;
	}
	assert_non_null(value);
	assert_string_equal(value, expected);
}

/* Each agent's own documentation and source: which variables make it keyless. */
static const struct {
	const char *agent;
	const char *name;
	const char *value;
} wanted[] = {
	{"gemini-cli", "GOOGLE_GENAI_USE_VERTEXAI", "true"},
	{"gemini-cli", "GOOGLE_CLOUD_PROJECT", "my-project"},
	{"gemini-cli", "GOOGLE_CLOUD_LOCATION", "global"},
	{"gemini-cli", "GEMINI_CLI_TRUST_WORKSPACE", "true"},
	{"claude-code", "CLAUDE_CODE_USE_VERTEX", "1"},
	{"claude-code", "ANTHROPIC_VERTEX_PROJECT_ID", "my-project"},
	{"claude-code", "CLOUD_ML_REGION", "global"},
	{"openclaw", "GOOGLE_CLOUD_PROJECT", "my-project"},
	{"openclaw", "GOOGLE_CLOUD_LOCATION", "global"},
	{"openclaw", "GOOGLE_CLOUD_API_KEY", "gcp-vertex-credentials"},
	{"openclaw", "ANTHROPIC_VERTEX_USE_GCP_METADATA", "1"},
	{"antigravity", "AGY_ADC_AUTH", "true"},
	{"antigravity", "GOOGLE_CLOUD_PROJECT", "my-project"},
	{"antigravity", "GOOGLE_CLOUD_LOCATION", "global"},
	{"opencode", "GOOGLE_CLOUD_PROJECT", "my-project"},
	{"opencode", "GOOGLE_VERTEX_LOCATION", "global"},
	{"generic", "GOOGLE_GENAI_USE_VERTEXAI", "true"},
	{"generic", "GOOGLE_CLOUD_PROJECT", "my-project"},
	{"generic", "GOOGLE_CLOUD_LOCATION", "global"},
};

static void each_agent_is_told_what_it_wants(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		AUTO_VARIABLES struct variables list = {0};
		apply(wanted[i].agent, &session, &list);
		assert_value(&list, wanted[i].name, wanted[i].value);
	}
}

static void an_unknown_agent_is_usage_and_names_the_known_ones(void **state)
{
	const struct preset *preset = NULL;
	struct err err = {0};

	(void)state;
	assert_int_equal(preset_find("copilot", &preset, &err), -1);
	assert_int_equal(err.code, ERR_USAGE);
	for (size_t i = 0; preset_name_at(i); i++)
		assert_non_null(strstr(err.text, preset_name_at(i)));
}

static void routing_is_set_for_a_keyed_run_too_and_the_switch_to_the_session_is_not(void **state)
{
	const struct routing keyed = {.project = "p", .location = "europe-west4"};
	AUTO_VARIABLES struct variables gemini = {0};
	AUTO_VARIABLES struct variables claude = {0};

	(void)state;
	apply("gemini-cli", &keyed, &gemini);
	assert_value(&gemini, "GOOGLE_CLOUD_PROJECT", "p");
	assert_value(&gemini, "GOOGLE_CLOUD_LOCATION", "europe-west4");
	assert_value(&gemini, "GOOGLE_GENAI_USE_VERTEXAI", NULL);
	apply("claude-code", &keyed, &claude);
	assert_value(&claude, "CLOUD_ML_REGION", "europe-west4");
	assert_value(&claude, "CLAUDE_CODE_USE_VERTEX", NULL);
}

static void a_project_that_is_not_known_is_not_set(void **state)
{
	const struct routing keyed = {.location = "global"};
	AUTO_VARIABLES struct variables list = {0};

	(void)state;
	apply("generic", &keyed, &list);
	assert_null(variables_find(&list, "GOOGLE_CLOUD_PROJECT"));
	assert_value(&list, "GOOGLE_CLOUD_LOCATION", "global");
}

static void the_marker_stands_only_where_no_real_key_crosses(void **state)
{
	const struct routing keyed = {.project = "p", .location = "global", .hosted = true};
	AUTO_VARIABLES struct variables with_key = {0};
	AUTO_VARIABLES struct variables with_blank = {0};
	AUTO_VARIABLES struct variables without_session = {0};

	(void)state;
	variables_set(&with_key, "GOOGLE_CLOUD_API_KEY", VARIABLE_CALLER, "a-real-key");
	apply("openclaw", &session, &with_key);
	assert_value(&with_key, "GOOGLE_CLOUD_API_KEY", "a-real-key");

	variables_set(&with_blank, "GOOGLE_CLOUD_API_KEY", VARIABLE_CALLER, " ");
	apply("openclaw", &session, &with_blank);
	assert_value(&with_blank, "GOOGLE_CLOUD_API_KEY", PRESET_KEY_MARKER);

	apply("openclaw", &keyed, &without_session);
	assert_null(variables_find(&without_session, "GOOGLE_CLOUD_API_KEY"));
}

static void what_the_caller_lets_cross_stays_the_callers(void **state)
{
	AUTO_VARIABLES struct variables list = {0};

	(void)state;
	variables_set(&list, "CLOUD_ML_REGION", VARIABLE_CALLER, "us-east5");
	apply("claude-code", &session, &list);
	assert_value(&list, "CLOUD_ML_REGION", "us-east5");
	assert_int_equal(variables_find(&list, "CLOUD_ML_REGION")->source, VARIABLE_CALLER);
	assert_int_equal(variables_find(&list, "CLAUDE_CODE_USE_VERTEX")->source, VARIABLE_PRESET);
}

/* The order: GOOGLE_CLOUD_LOCATION, GCP_VERTEX_LOCATION, the profile's, global. */
static const struct {
	const char *environ[4];
	const char *of_profile;
	const char *expected;
} locations[] = {
	{{"GOOGLE_CLOUD_LOCATION=a", "GCP_VERTEX_LOCATION=b"}, "c", "a"},
	{{"GCP_VERTEX_LOCATION=b"}, "c", "b"},
	{{NULL}, "c", "c"},
	{{NULL}, NULL, "global"},
	{{NULL}, "", "global"},
	{{"GOOGLE_CLOUD_LOCATION=", "GCP_VERTEX_LOCATION=b"}, "c", "b"},
	{{"GOOGLE_CLOUD_LOCATION= \t", "GCP_VERTEX_LOCATION= "}, "c", "c"},
	{{"GOOGLE_CLOUD_LOCATION= a "}, "c", "a"},
	{{"GCP_LOCATION=us-central1-a"}, NULL, "global"},
	{{"GCP_LOCATION=us-central1-a"}, "c", "c"},
};

static void the_location_is_found_in_order_and_a_zone_is_never_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(locations); i++) {
		const struct caller caller = {.environ = (char *const *)locations[i].environ};
		AUTO_FREE char *found = routing_location(&caller, locations[i].of_profile);
		assert_string_equal(found, locations[i].expected);
	}
}

static const struct {
	const char *environ[4];
	const char *of_profile;
	const char *expected; /* NULL: none */
	const char *refused;  /* NULL: not */
} projects[] = {
	{{NULL}, "p", "p", NULL},
	{{"GOOGLE_CLOUD_PROJECT=p"}, "p", "p", NULL},
	{{"GOOGLE_CLOUD_PROJECT= p "}, "p", "p", NULL},
	{{"GOOGLE_CLOUD_PROJECT= "}, "p", "p", NULL},
	{{"GOOGLE_CLOUD_PROJECT=other"}, "p", NULL, "GOOGLE_CLOUD_PROJECT"},
	{{"GCP_PROJECT_ID=other"}, "p", NULL, "GCP_PROJECT_ID"},
	{{"GCP_PROJECT=other"}, "p", NULL, "GCP_PROJECT"},
	{{"GOOGLE_CLOUD_PROJECT=p", "GCP_PROJECT=other"}, "p", NULL, "GCP_PROJECT"},
	{{NULL}, NULL, NULL, NULL},
	{{"GOOGLE_CLOUD_PROJECT=a", "GCP_PROJECT_ID=b", "GCP_PROJECT=c"}, NULL, "a", NULL},
	{{"GCP_PROJECT_ID=b", "GCP_PROJECT=c"}, NULL, "b", NULL},
	{{"GCP_PROJECT=c"}, NULL, "c", NULL},
};

static void another_project_than_the_profiles_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(projects); i++) {
		const struct caller caller = {.environ = (char *const *)projects[i].environ};
		AUTO_FREE char *found = NULL;
		struct err err = {0};
		const int result =
			routing_project(&caller, projects[i].of_profile, NULL, &found, &err);
		if (projects[i].refused) {
			assert_int_equal(result, -1);
			assert_int_equal(err.code, ERR_INVALID);
			assert_ptr_equal(strstr(err.text, projects[i].refused), err.text);
			/* what the caller's variable holds is not said */
			assert_null(strstr(err.text, "other,"));
		} else {
			assert_int_equal(result, 0);
			assert_true(found ? projects[i].expected != NULL :
					    projects[i].expected == NULL);
			if (found)
				assert_string_equal(found, projects[i].expected);
		}
	}
}

static void without_an_agent_only_what_crosses_can_name_another_project(void **state)
{
	const char *const variables_here[] = {"GCP_PROJECT=other", NULL};
	const struct caller caller = {.environ = (char *const *)variables_here};
	AUTO_STRV struct strv crossing = {0};
	AUTO_FREE char *found = NULL;
	struct err err = {0};

	(void)state;
	assert_int_equal(routing_project(&caller, "p", &crossing, &found, &err), 0);
	assert_string_equal(found, "p");
	strv_add(&crossing, "GCP_PROJECT", strlen("GCP_PROJECT"));
	assert_int_equal(routing_project(&caller, "p", &crossing, &found, &err), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_agent_is_told_what_it_wants),
		cmocka_unit_test(an_unknown_agent_is_usage_and_names_the_known_ones),
		cmocka_unit_test(
			routing_is_set_for_a_keyed_run_too_and_the_switch_to_the_session_is_not),
		cmocka_unit_test(a_project_that_is_not_known_is_not_set),
		cmocka_unit_test(the_marker_stands_only_where_no_real_key_crosses),
		cmocka_unit_test(what_the_caller_lets_cross_stays_the_callers),
		cmocka_unit_test(the_location_is_found_in_order_and_a_zone_is_never_read),
		cmocka_unit_test(another_project_than_the_profiles_is_refused),
		cmocka_unit_test(without_an_agent_only_what_crosses_can_name_another_project),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
