/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/plan/environment.h"

#include "broker/base/buf.h"
#include "broker/base/secret.h"
#include "broker/base/strv.h"
#include "sandbox/plan/caller.h"
#include "sandbox/plan/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* launcher.md 0.3, row by row. */
static const char *const denied[] = {
	"GOOGLE_APPLICATION_CREDENTIALS",
	"GOOGLE_OAUTH_ACCESS_TOKEN",
	"GOOGLE_GHA_CREDS_PATH",
	"SSH_AUTH_SOCK",
	"SSH_AGENT_PID",
	"DOCKER_HOST",
	"DOCKER_CERT_PATH",
	"DOCKER_TLS_VERIFY",
	"CONTAINER_HOST",
	"GITHUB_TOKEN",
	"GH_TOKEN",
	"NPM_TOKEN",
	"LD_PRELOAD",
	"LD_LIBRARY_PATH",
	"XDG_RUNTIME_DIR",
	"DBUS_SESSION_BUS_ADDRESS",
	"AWS_SECRET_ACCESS_KEY",
	"AZURE_CLIENT_SECRET",
	"ARM_CLIENT_SECRET",
	"TF_VAR_password",
	"CLOUDSDK_CONFIG",
	"CLOUDSDK_AUTH_ACCESS_TOKEN",
};

static const char *const owned[] = {
	"HOME",
	"KUBECONFIG",
	"PATH",
	"GCE_METADATA_HOST",
	"GCE_METADATA_IP",
	"METADATA_SERVER_DETECTION",
	"GCE_METADATA_ROOT",
	"POSTERN_CONTROL",
	"GCE_METADATA_MTLS_MODE",
	"POSTERN_SESSION",
	"GCE_METADATA_FUTURE",
	"DOCKER_CONFIG",
};

static const char *const free_names[] = {
	"GOOGLE_CLOUD_PROJECT",
	"GOOGLE_CLOUD_LOCATION",
	"GOOGLE_GENAI_USE_VERTEXAI",
	"GCP_PROJECT",
	"ANTHROPIC_API_KEY",
	"GEMINI_API_KEY",
	"GOOGLE_API_KEY",
	"HTTPS_PROXY",
	"NO_PROXY",
	"HOMEPAGE",
	"PATHS",
	"AWSOME",
	"MY_AWS_KEY",
	"home",
	"TERM",
};

static void each_name_is_judged_as_the_table_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(denied); i++)
		assert_int_equal(environment_judge(denied[i]), ENVIRONMENT_DENIED);
	for (size_t i = 0; i < ARRAY_LEN(owned); i++)
		assert_true(environment_judge(owned[i]) > ENVIRONMENT_DENIED);
	for (size_t i = 0; i < ARRAY_LEN(free_names); i++)
		assert_int_equal(environment_judge(free_names[i]), ENVIRONMENT_CROSSES);
}

struct crossing {
	struct run_options options;
	struct variables container;
	struct strv refused;
	struct strv absent;
};

static void crossing_deinit(struct crossing *crossing)
{
	run_options_deinit(&crossing->options);
	variables_deinit(&crossing->container);
	strv_deinit(&crossing->refused);
	strv_deinit(&crossing->absent);
}

static void ask(struct strv *list, const char *name)
{
	strv_add(list, name, strlen(name));
}

static void cross(struct crossing *crossing, const char *const *variables_here)
{
	const struct caller caller = {.environ = (char *const *)variables_here};

	environment_cross(&crossing->options, &caller, &crossing->container, &crossing->refused,
			  &crossing->absent);
}

static void nothing_crosses_unless_it_is_asked_for(void **state)
{
	CLEANUP(crossing_deinit) struct crossing crossing = {0};

	(void)state;
	cross(&crossing, (const char *const[]){"GEMINI_API_KEY=k", "SECRET=s", NULL});
	assert_int_equal(crossing.container.count, 0);
	assert_int_equal(crossing.refused.count, 0);
}

static void what_is_asked_for_crosses_with_the_callers_value_byte_for_byte(void **state)
{
	static const char value[] = "two\nlines, 'quotes' = and \xff";
	const char *const variables_here[] = {"KEY=two\nlines, 'quotes' = and \xff",
					      "EMPTY=", NULL};
	CLEANUP(crossing_deinit) struct crossing crossing = {0};

	(void)state;
	ask(&crossing.options.env, "KEY");
	ask(&crossing.options.env, "EMPTY");
	ask(&crossing.options.env, "KEY");
	ask(&crossing.options.env, "NOT_THERE");
	cross(&crossing, variables_here);
	assert_int_equal(crossing.container.count, 2);
	assert_string_equal(secret_bytes(variables_find(&crossing.container, "KEY")->value), value);
	assert_string_equal(secret_bytes(variables_find(&crossing.container, "EMPTY")->value), "");
	assert_int_equal(crossing.absent.count, 1);
	assert_string_equal(crossing.absent.items[0], "NOT_THERE");
}

static void a_denied_name_is_left_out_and_reported_by_name_alone(void **state)
{
	CLEANUP(crossing_deinit) struct crossing crossing = {0};
	AUTO_BUF struct buf line;

	(void)state;
	buf_init(&line, 4096);
	ask(&crossing.options.env, "GITHUB_TOKEN");
	ask(&crossing.options.env, "AWS_SECRET_ACCESS_KEY");
	ask(&crossing.options.env, "HOME");
	ask(&crossing.options.env, "GITHUB_TOKEN");
	cross(&crossing, (const char *const[]){"GITHUB_TOKEN=ghp_canary",
					       "AWS_SECRET_ACCESS_KEY=canary", "HOME=/h", NULL});
	assert_int_equal(crossing.container.count, 0);
	environment_refused(&crossing.refused, &line);
	assert_string_equal(line.data,
			    "3 variables refused: GITHUB_TOKEN, AWS_SECRET_ACCESS_KEY, HOME");
}

static void one_refused_is_singular_and_none_is_silent(void **state)
{
	AUTO_STRV struct strv refused = {0};
	AUTO_BUF struct buf line;

	(void)state;
	buf_init(&line, 4096);
	environment_refused(&refused, &line);
	assert_int_equal(line.len, 0);
	ask(&refused, "A");
	environment_refused(&refused, &line);
	assert_string_equal(line.data, "1 variable refused: A");
}

static void force_lifts_a_denial_but_never_what_the_sandbox_owns(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(denied); i++) {
		CLEANUP(crossing_deinit) struct crossing crossing = {0};
		char item[64];
		(void)snprintf(item, sizeof(item), "%s=v", denied[i]);
		ask(&crossing.options.env_force, denied[i]);
		cross(&crossing, (const char *const[]){item, NULL});
		assert_int_equal(crossing.container.count, 1);
		assert_int_equal(crossing.refused.count, 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(owned); i++) {
		CLEANUP(crossing_deinit) struct crossing crossing = {0};
		char item[64];
		(void)snprintf(item, sizeof(item), "%s=v", owned[i]);
		ask(&crossing.options.env_force, owned[i]);
		cross(&crossing, (const char *const[]){item, NULL});
		assert_int_equal(crossing.container.count, 0);
		assert_int_equal(crossing.refused.count, 1);
	}
}

static void an_images_own_credential_is_taken_out_unless_one_crosses(void **state)
{
	static const char *const forced[] = {
		"GOOGLE_APPLICATION_CREDENTIALS",
		"CLOUDSDK_CONFIG",
		"CLOUDSDK_AUTH_CREDENTIAL_FILE_OVERRIDE",
		"CLOUDSDK_AUTH_ACCESS_TOKEN_FILE",
		"SSH_AUTH_SOCK",
		"DOCKER_HOST",
		"CONTAINER_HOST",
		"HTTP_PROXY",
		"http_proxy",
		"HTTPS_PROXY",
		"https_proxy",
	};
	AUTO_VARIABLES struct variables list = {0};

	(void)state;
	variables_set(&list, "HTTPS_PROXY", VARIABLE_CALLER, "http://proxy");
	environment_unset(&list);
	assert_int_equal(list.count, ARRAY_LEN(forced));
	for (size_t i = 0; i < ARRAY_LEN(forced); i++) {
		const struct variable *const found = variables_find(&list, forced[i]);
		assert_non_null(found);
		if (!strcmp(forced[i], "HTTPS_PROXY")) {
			assert_int_equal(found->source, VARIABLE_CALLER);
		} else {
			assert_int_equal(found->source, VARIABLE_UNSET);
			assert_null(found->value);
		}
	}
}

static const char *value_of(const struct variables *list, const char *name)
{
	const struct variable *const found = variables_find(list, name);

	return found && found->value ? secret_bytes(found->value) : "(none)";
}

/* What crosses of the two, and what becomes of each with the hosts h.d.i and api. */
static const struct {
	const char *upper;
	const char *lower;
	const char *of_upper;
	const char *of_lower;
} no_proxies[] = {
	{NULL, NULL, "h.d.i,api", "h.d.i,api"},
	{"corp", NULL, "corp,h.d.i,api", "corp,h.d.i,api"},
	{NULL, "corp", "corp,h.d.i,api", "corp,h.d.i,api"},
	{"a", "b", "a,h.d.i,api", "b,h.d.i,api"},
	{"api, x", NULL, "api, x,h.d.i", "api, x,h.d.i"},
	{"apix", NULL, "apix,h.d.i,api", "apix,h.d.i,api"},
	{"", NULL, "h.d.i,api", "h.d.i,api"},
};

static void no_proxy_is_appended_to_what_crosses(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(no_proxies); i++) {
		AUTO_VARIABLES struct variables list = {0};
		AUTO_STRV struct strv hosts = {0};
		ask(&hosts, "h.d.i");
		ask(&hosts, "api");
		if (no_proxies[i].upper)
			variables_set(&list, "NO_PROXY", VARIABLE_CALLER, no_proxies[i].upper);
		if (no_proxies[i].lower)
			variables_set(&list, "no_proxy", VARIABLE_CALLER, no_proxies[i].lower);
		environment_no_proxy(&list, &hosts, VARIABLE_SESSION);
		assert_string_equal(value_of(&list, "NO_PROXY"), no_proxies[i].of_upper);
		assert_string_equal(value_of(&list, "no_proxy"), no_proxies[i].of_lower);
		/* Again, as with a second session: nothing is there twice. */
		environment_no_proxy(&list, &hosts, VARIABLE_SESSION);
		assert_string_equal(value_of(&list, "NO_PROXY"), no_proxies[i].of_upper);
	}
}

static void dockers_client_sees_four_variables_and_no_other(void **state)
{
	const char *const variables_here[] = {"PATH=/evil",
					      "HOME=/home/me",
					      "DOCKER_HOST=unix:///x",
					      "DOCKER_CONFIG=/home/me/.docker",
					      "DOCKER_CONTEXT=c",
					      "HTTP_PROXY=p",
					      "XDG_RUNTIME_DIR=/r",
					      NULL};
	const struct caller caller = {.environ = (char *const *)variables_here};
	AUTO_VARIABLES struct variables client = {0};

	(void)state;
	environment_client(ENGINE_DOCKER, &caller, "/dir", "/dir/docker", &client);
	assert_int_equal(client.count, 4);
	assert_string_equal(value_of(&client, "PATH"), "/usr/sbin:/usr/bin:/sbin:/bin");
	assert_string_equal(value_of(&client, "DOCKER_HOST"), "unix:///x");
	assert_string_equal(value_of(&client, "DOCKER_CONFIG"), "/dir/docker");
	assert_string_equal(value_of(&client, "HOME"), "/dir");
}

static void podmans_client_keeps_the_home_where_its_storage_is(void **state)
{
	const char *const variables_here[] = {"PATH=/evil",
					      "HOME=/home/me",
					      "DOCKER_HOST=unix:///x",
					      "XDG_RUNTIME_DIR=/r",
					      "CONTAINER_HOST=ssh://elsewhere",
					      NULL};
	const struct caller caller = {.environ = (char *const *)variables_here};
	AUTO_VARIABLES struct variables client = {0};

	(void)state;
	environment_client(ENGINE_PODMAN, &caller, "/dir", NULL, &client);
	assert_int_equal(client.count, 3);
	assert_string_equal(value_of(&client, "PATH"), "/usr/sbin:/usr/bin:/sbin:/bin");
	assert_string_equal(value_of(&client, "HOME"), "/home/me");
	assert_string_equal(value_of(&client, "XDG_RUNTIME_DIR"), "/r");
}

static void a_session_is_expected_to_set_what_the_contract_says(void **state)
{
	static const char *const expected[] = {
		"GCE_METADATA_HOST",
		"GCE_METADATA_IP",
		"GCE_METADATA_ROOT",
		"METADATA_SERVER_DETECTION",
		"GCE_METADATA_MTLS_MODE",
		"NO_PROXY",
		"no_proxy",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(expected); i++)
		assert_string_equal(environment_session_name(i), expected[i]);
	assert_null(environment_session_name(ARRAY_LEN(expected)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_name_is_judged_as_the_table_says),
		cmocka_unit_test(nothing_crosses_unless_it_is_asked_for),
		cmocka_unit_test(what_is_asked_for_crosses_with_the_callers_value_byte_for_byte),
		cmocka_unit_test(a_denied_name_is_left_out_and_reported_by_name_alone),
		cmocka_unit_test(one_refused_is_singular_and_none_is_silent),
		cmocka_unit_test(force_lifts_a_denial_but_never_what_the_sandbox_owns),
		cmocka_unit_test(an_images_own_credential_is_taken_out_unless_one_crosses),
		cmocka_unit_test(no_proxy_is_appended_to_what_crosses),
		cmocka_unit_test(dockers_client_sees_four_variables_and_no_other),
		cmocka_unit_test(podmans_client_keeps_the_home_where_its_storage_is),
		cmocka_unit_test(a_session_is_expected_to_set_what_the_contract_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
