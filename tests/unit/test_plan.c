/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/plan/plan.h"

#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/base/err.h"
#include "broker/base/secret.h"
#include "sandbox/plan/presets.h"
#include "sandbox/plan/providers.h"
#include "tests/unit/plan_fixture.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define ENDPOINT "host.docker.internal:40123"

/* test_plan_door.c has the other way. */
static void run_init(struct run *run, const char *const arguments[])
{
	run_init_attached(run, "gateway", arguments);
}

static int plan_bad(struct run *run)
{
	assert_int_equal(plan_new(&run->inputs, &run->plan, &run->err), -1);
	assert_null(run->plan);
	return (int)run->err.code;
}

static bool has(const struct plan *plan, const char *item)
{
	return position(&plan->argv, item) != SIZE_MAX;
}

/* "-e NAME" stands in the argument vector before the image. */
static bool names(const struct plan *plan, const char *name)
{
	const size_t at = position(&plan->argv, name);

	return at != SIZE_MAX && !strcmp(plan->argv.items[at - 1], "-e") &&
	       at < position(&plan->argv, plan->image);
}

static const char *value_in(const struct environ_block *block, const char *name)
{
	const size_t len = strlen(name);

	for (size_t i = 0; i < block->count; i++)
		if (!strncmp(block->items[i], name, len) && block->items[i][len] == '=')
			return block->items[i] + len + 1;
	return NULL;
}

static void bind_session(struct run *run)
{
	AUTO_VARIABLES struct variables env = {0};
	static const char *const names_[] = {"GCE_METADATA_HOST", "GCE_METADATA_IP",
					     "GCE_METADATA_ROOT"};

	for (size_t i = 0; i < ARRAY_LEN(names_); i++)
		variables_set(&env, names_[i], VARIABLE_SESSION, ENDPOINT);
	variables_set(&env, "METADATA_SERVER_DETECTION", VARIABLE_SESSION, "assume-present");
	variables_set(&env, "GCE_METADATA_MTLS_MODE", VARIABLE_SESSION, "none");
	variables_set(&env, "NO_PROXY", VARIABLE_SESSION, "broker.example");
	variables_set(&env, "no_proxy", VARIABLE_SESSION, "broker.example");
	assert_int_equal(plan_bind_session(run->plan, SESSION_ID, &env, &run->err), 0);
}

static void every_sandbox_is_confined(void **state)
{
	static const char *const flags[] = {
		"--init",
		"--cap-drop=ALL",
		"--security-opt=no-new-privileges",
		"--pids-limit=512",
		"--add-host=host.docker.internal:host-gateway",
		"--name=postern-me-00112233aabbccdd",
		"--label=postern.owner=me",
		"--label=postern.run=00112233aabbccdd",
		"--label=postern.launcher-pid=42",
		"--label=postern.launcher-start=4711",
		"--label=postern.launcher-namespace=4026531836",
		"--cidfile=/run/postern-runs/00112233aabbccdd/cid",
		"--user=1234:1235",
	};
	AUTO_RUN struct run run;

	(void)state;
	run_init(&run, (const char *const[]){"image", "command", "arg", NULL});
	const struct plan *const plan = plan_good(&run);
	assert_string_equal(plan->argv.items[0], "/usr/bin/docker");
	assert_string_equal(plan->argv.items[1], "run");
	for (size_t i = 0; i < ARRAY_LEN(flags); i++)
		if (!has(plan, flags[i]))
			fail_msg("%s is not there", flags[i]);
	const size_t image = position(&plan->argv, "image");
	assert_int_equal(image, plan->argv.count - 3);
	assert_string_equal(plan->argv.items[image + 1], "command");
	assert_string_equal(plan->argv.items[image + 2], "arg");
}

static void by_itself_it_wires_the_session_and_home_and_nothing_more(void **state)
{
	AUTO_RUN struct run run;

	(void)state;
	run_init(&run, (const char *const[]){"image", NULL});
	const struct plan *const plan = plan_good(&run);
	bind_session(&run);
	for (size_t i = 0; i < plan->container.count; i++) {
		const struct variable *const variable = &plan->container.items[i];
		assert_true(variable->source == VARIABLE_SESSION ||
			    variable->source == VARIABLE_UNSET || !strcmp(variable->name, "HOME"));
	}
	assert_int_equal(plan->mount_count, 0);
	assert_true(has(plan, "--label=postern.session=" SESSION_ID));
	assert_string_equal(plan->session.label, plan->name);
}

static void no_value_is_in_the_argument_vector_and_each_is_in_the_clients_environment(void **state)
{
	static const char *const variables_here[] = {"HOME=/home/me", "MY_KEY=canary-value",
						     "HTTPS_PROXY=http://u:canary-value@p", NULL};
	AUTO_ENVIRON_BLOCK struct environ_block block = {0};
	AUTO_ENVIRON_BLOCK struct environ_block other = {0};
	AUTO_RUN struct run run;

	(void)state;
	run_init(&run,
		 (const char *const[]){"--env", "MY_KEY", "--env", "HTTPS_PROXY", "image", NULL});
	run.caller.environ = (char *const *)variables_here;
	const struct plan *const plan = plan_good(&run);
	bind_session(&run);
	for (size_t i = 0; i < plan->argv.count; i++) {
		assert_null(strstr(plan->argv.items[i], "canary"));
		assert_null(strstr(plan->argv.items[i], ENDPOINT));
		assert_null(strstr(plan->argv.items[i], "assume-present"));
	}
	assert_true(names(plan, "MY_KEY") && names(plan, "HTTPS_PROXY"));
	assert_true(names(plan, "GCE_METADATA_HOST"));
	plan_run_environ(plan, &block);
	assert_string_equal(value_in(&block, "MY_KEY"), "canary-value");
	assert_string_equal(value_in(&block, "GCE_METADATA_HOST"), ENDPOINT);
	assert_string_equal(value_in(&block, "NO_PROXY"), "host.docker.internal,broker.example");
	/* the client's own, never the sandbox's */
	assert_string_equal(value_in(&block, "HOME"), plan->directory);
	assert_string_equal(plan->env_file_text, "HOME=/workspace/home\n");
	/* every other call of the engine has nothing of it */
	plan_engine_environ(plan, &other);
	assert_int_equal(other.count, 3);
	assert_null(value_in(&other, "MY_KEY"));
}

static void an_unset_variable_is_named_and_has_no_value_anywhere(void **state)
{
	AUTO_ENVIRON_BLOCK struct environ_block block = {0};
	AUTO_RUN struct run run;

	(void)state;
	run_init(&run, (const char *const[]){"image", NULL});
	const struct plan *const plan = plan_good(&run);
	assert_true(names(plan, "GOOGLE_APPLICATION_CREDENTIALS"));
	plan_run_environ(plan, &block);
	assert_null(value_in(&block, "GOOGLE_APPLICATION_CREDENTIALS"));
}

static void the_operators_docker_host_does_not_cross_by_its_name(void **state)
{
	static const char *const variables_here[] = {"DOCKER_HOST=unix:///x.sock", NULL};
	AUTO_ENVIRON_BLOCK struct environ_block block = {0};
	AUTO_RUN struct run run;

	(void)state;
	run_init(&run, (const char *const[]){"image", NULL});
	run.caller.environ = (char *const *)variables_here;
	const struct plan *const plan = plan_good(&run);
	plan_run_environ(plan, &block);
	/* "-e DOCKER_HOST" would hand the client's own value on */
	assert_string_equal(value_in(&block, "DOCKER_HOST"), "unix:///x.sock");
	assert_false(names(plan, "DOCKER_HOST"));
	assert_non_null(strstr(plan->env_file_text, "DOCKER_HOST=\n"));
}

static void podman_unsets_by_a_flag_of_its_own(void **state)
{
	AUTO_RUN struct run run;

	(void)state;
	run_init(&run, (const char *const[]){"--engine", "podman", "image", NULL});
	run.engine.version = "5.2.0";
	const struct plan *const plan = plan_good(&run);
	assert_true(has(plan, "--unsetenv=GOOGLE_APPLICATION_CREDENTIALS"));
	assert_false(names(plan, "GOOGLE_APPLICATION_CREDENTIALS"));
}

/* launcher.md 0.4: by which address the host is reached. */
static const struct {
	const char *engine;
	const char *version;
	const char *host_address;
	const char *expected; /* NULL: refused */
} hosts[] = {
	{"docker", "20.10.24", NULL, "host-gateway"},
	{"docker", "29.0.1", "172.17.0.1", "host-gateway"},
	{"podman", "4.3.1", "10.88.0.1", "10.88.0.1"},
	{"podman", "4.6.9", "10.88.0.1", "10.88.0.1"},
	{"podman", "4.7.0", "10.88.0.1", "host-gateway"},
	{"podman", "4.10.0-dev", NULL, "host-gateway"},
	{"podman", "5.0.0", NULL, "host-gateway"},
	{"podman", "4.3.1", NULL, NULL},
};

static void the_way_to_the_host_is_the_versions(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
		AUTO_RUN struct run run;
		run_init(&run, (const char *const[]){"--engine", hosts[i].engine, "image", NULL});
		run.engine.version = hosts[i].version;
		run.engine.host_address = hosts[i].host_address;
		if (!hosts[i].expected) {
			assert_int_equal(plan_bad(&run), ERR_INVALID);
			continue;
		}
		AUTO_FREE char *flag =
			xasprintf("--add-host=host.docker.internal:%s", hosts[i].expected);
		assert_true(has(plan_good(&run), flag));
	}
}

/* Who runs the command: never root by accident. */
static const struct {
	uid_t uid;
	const char *option;
	const char *image_user;
	const char *expected;
} users[] = {
	{1234, NULL, NULL, "--user=1234:1235"},
	{1234, NULL, "node", "--user=1234:1235"},
	{0, NULL, "node", "--user=node"},
	{0, NULL, "1001:1001", "--user=1001:1001"},
	{0, NULL, "10", "--user=10"},
	{0, NULL, "node\x1b[2J", "--user=1000:1000"},
	{0, NULL, "no de", "--user=1000:1000"},
	{0, NULL, NULL, "--user=1000:1000"},
	{0, NULL, "", "--user=1000:1000"},
	{0, NULL, "root", "--user=1000:1000"},
	{0, NULL, "0", "--user=1000:1000"},
	{0, NULL, "0:0", "--user=1000:1000"},
	{0, NULL, "root:root", "--user=1000:1000"},
	{0, NULL, "00", "--user=1000:1000"},
	{0, NULL, "+0", "--user=1000:1000"},
	{0, NULL, "-0:7", "--user=1000:1000"},
	{0, NULL, ":7", "--user=1000:1000"},
	{0, "7", "node", "--user=7:7"},
	{1234, "7:8", NULL, "--user=7:8"},
	{2147483648U, "1000:1000", NULL, "--user=1000:1000"},
};

static void the_user_is_the_callers_the_images_or_1000(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(users); i++) {
		AUTO_RUN struct run run;
		const char *const with[] = {"--user", users[i].option, "image", NULL};
		run_init(&run, users[i].option ? with : with + 2);
		run.caller.uid = users[i].uid;
		run.engine.image_user = users[i].image_user;
		if (!has(plan_good(&run), users[i].expected))
			fail_msg("no %s for \"%s\"", users[i].expected,
				 users[i].image_user ? users[i].image_user : "");
	}
}

static void ids_that_engines_refuse_are_an_error_with_the_repair(void **state)
{
	AUTO_RUN struct run run;

	(void)state;
	run_init(&run, (const char *const[]){"image", NULL});
	run.caller.uid = 2147483648U;
	assert_int_equal(plan_bad(&run), ERR_INVALID);
	assert_non_null(strstr(run.err.text, "--user 1000:1000"));
	run.caller.uid = 2147483647U;
	assert_true(has(plan_good(&run), "--user=2147483647:1235"));
}

/* Whether a session is opened: the arguments, a variable that the caller has, and the answer. */
static const struct {
	const char *arguments[6];
	const char *variable;
	bool wanted;
} sessions[] = {
	{{"image"}, "GOOGLE_CLOUD_API_KEY=k", true},
	{{"--profile", "p", "--env", "GOOGLE_CLOUD_API_KEY", "image"},
	 "GOOGLE_CLOUD_API_KEY=k",
	 true},
	{{"--provider", "google", "image"}, "A=b", false},
	{{"--provider", "anthropic", "image"}, "A=b", false},
	{{"--provider", "openai", "image"}, "A=b", false},
	{{"--provider", "google-vertex", "image"}, "GOOGLE_CLOUD_API_KEY=k", true},
	{{"--provider", "google-vertex", "--env", "GOOGLE_CLOUD_API_KEY", "image"},
	 "GOOGLE_CLOUD_API_KEY=k",
	 false},
	{{"--provider", "google-vertex", "--env", "GOOGLE_CLOUD_API_KEY", "image"},
	 "GOOGLE_CLOUD_API_KEY= ",
	 true},
	{{"--provider", "google-vertex", "--env", "GOOGLE_CLOUD_API_KEY", "image"}, "A=b", true},
	{{"--provider", "google-vertex", "--env", "GOOGLE_CLOUD_API_KEY", "image"},
	 "GOOGLE_CLOUD_API_KEY=gcp-vertex-credentials",
	 true},
	{{"--provider", "anthropic-vertex", "--env", "GOOGLE_CLOUD_API_KEY", "image"},
	 "GOOGLE_CLOUD_API_KEY=k",
	 true},
};

static void a_keyed_run_opens_no_session_and_sets_no_metadata_variable(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(sessions); i++) {
		const char *const variables_here[] = {sessions[i].variable, NULL};
		const struct provider *provider = NULL;
		bool wanted = false;
		AUTO_RUN struct run run;
		run_init(&run, sessions[i].arguments);
		run.caller.environ = (char *const *)variables_here;
		assert_int_equal(plan_wants_session(&run.options, &run.caller, &wanted, &provider,
						    &run.err),
				 0);
		assert_int_equal(wanted, sessions[i].wanted);
		if (!wanted)
			run.inputs.profile = NULL;
		const struct plan *const plan = plan_good(&run);
		assert_int_equal(names(plan, "GCE_METADATA_HOST"), wanted);
		assert_int_equal(plan->session.profile != NULL, wanted);
	}
}

static void a_keyless_provider_without_a_recipe_is_refused_before_anything(void **state)
{
	const struct provider *provider = NULL;
	bool wanted = false;
	AUTO_RUN struct run run;

	(void)state;
	run_init(&run, (const char *const[]){"--provider", "anthropic-bedrock", "image", NULL});
	assert_int_equal(plan_wants_session(&run.options, &run.caller, &wanted, &provider,
					    &run.err),
			 -1);
	assert_int_equal(run.err.code, ERR_UNSUPPORTED);
	assert_int_equal(plan_bad(&run), ERR_UNSUPPORTED);
}

static void routing_follows_the_profile_and_a_keyed_run_gets_the_callers(void **state)
{
	static const char *const variables_here[] = {"GOOGLE_CLOUD_PROJECT=mine",
						     "GOOGLE_CLOUD_API_KEY=k", NULL};
	AUTO_ENVIRON_BLOCK struct environ_block of_session = {0};
	AUTO_ENVIRON_BLOCK struct environ_block of_key = {0};
	AUTO_RUN struct run run;
	AUTO_RUN struct run keyed;

	(void)state;
	run_init(&run, (const char *const[]){"--agent", "openclaw", "image", NULL});
	plan_run_environ(plan_good(&run), &of_session);
	assert_string_equal(value_in(&of_session, "GOOGLE_CLOUD_PROJECT"), "my-project");
	assert_string_equal(value_in(&of_session, "GOOGLE_CLOUD_LOCATION"), "europe-west4");
	assert_string_equal(value_in(&of_session, "GOOGLE_CLOUD_API_KEY"),
			    "gcp-vertex-credentials");

	run_init(&keyed, (const char *const[]){"--agent", "openclaw", "--provider", "google-vertex",
					       "--env", "GOOGLE_CLOUD_API_KEY", "image", NULL});
	keyed.caller.environ = (char *const *)variables_here;
	keyed.inputs.profile = NULL;
	keyed.inputs.project = NULL;
	keyed.inputs.location = NULL;
	plan_run_environ(plan_good(&keyed), &of_key);
	assert_string_equal(value_in(&of_key, "GOOGLE_CLOUD_PROJECT"), "mine");
	assert_string_equal(value_in(&of_key, "GOOGLE_CLOUD_LOCATION"), "global");
	assert_string_equal(value_in(&of_key, "GOOGLE_CLOUD_API_KEY"), "k");
	assert_null(value_in(&of_key, "ANTHROPIC_VERTEX_USE_GCP_METADATA"));
}

static void another_project_than_the_profiles_is_refused(void **state)
{
	static const char *const variables_here[] = {"GCP_PROJECT=other", NULL};
	AUTO_RUN struct run run;
	AUTO_RUN struct run lean;

	(void)state;
	run_init(&run, (const char *const[]){"--agent", "generic", "image", NULL});
	run.caller.environ = (char *const *)variables_here;
	assert_int_equal(plan_bad(&run), ERR_INVALID);
	run_init(&lean, (const char *const[]){"--env", "GCP_PROJECT", "image", NULL});
	lean.caller.environ = (char *const *)variables_here;
	assert_int_equal(plan_bad(&lean), ERR_INVALID);
}

static void the_kubeconfig_crosses_as_a_directory_that_is_read_only(void **state)
{
	AUTO_ENVIRON_BLOCK struct environ_block block = {0};
	AUTO_RUN struct run run;

	(void)state;
	run_init(&run, (const char *const[]){"--kubeconfig", "k", "image", NULL});
	run.inputs.api_server_host = "10.0.0.7";
	const struct plan *const plan = plan_good(&run);
	assert_true(has(plan, "--mount=type=bind,src=/run/postern-runs/00112233aabbccdd/creds,"
			      "dst=/creds,readonly"));
	assert_true(names(plan, "KUBECONFIG"));
	plan_run_environ(plan, &block);
	assert_string_equal(value_in(&block, "KUBECONFIG"), "/creds/kubeconfig");
	assert_string_equal(value_in(&block, "NO_PROXY"), "host.docker.internal,10.0.0.7");
}

static void a_session_may_set_no_variable_that_the_sandbox_owns(void **state)
{
	static const char *const hostile[] = {"HOME",	    "PATH",	   "KUBECONFIG",
					      "LD_PRELOAD", "DOCKER_HOST", "DOCKER_CONFIG",
					      "A B",	    "X=Y",	   ""};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
		AUTO_VARIABLES struct variables env = {0};
		AUTO_RUN struct run run;
		run_init(&run, (const char *const[]){"image", NULL});
		(void)plan_good(&run);
		variables_set(&env, hostile[i], VARIABLE_SESSION, "x");
		assert_int_equal(plan_bind_session(run.plan, SESSION_ID, &env, &run.err), -1);
		assert_int_equal(run.err.code, ERR_INVALID);
	}
}

static void a_second_session_takes_the_place_of_the_first(void **state)
{
	AUTO_VARIABLES struct variables env = {0};
	AUTO_ENVIRON_BLOCK struct environ_block block = {0};
	AUTO_RUN struct run run;

	(void)state;
	run_init(&run, (const char *const[]){"image", NULL});
	const struct plan *const plan = plan_good(&run);
	bind_session(&run);
	variables_set(&env, "GCE_METADATA_HOST", VARIABLE_SESSION, "other:1");
	assert_int_equal(plan_bind_session(run.plan, "fedcba9876543210", &env, &run.err), 0);
	plan_run_environ(plan, &block);
	assert_string_equal(value_in(&block, "GCE_METADATA_HOST"), "other:1");
	assert_null(value_in(&block, "GCE_METADATA_IP"));
	assert_false(names(plan, "GCE_METADATA_IP"));
	assert_true(has(plan, "--label=postern.session=fedcba9876543210"));
	assert_false(has(plan, "--label=postern.session=" SESSION_ID));
}

static void the_sessions_own_win_over_what_the_caller_asked_for(void **state)
{
	static const char *const variables_here[] = {"GCE_METADATA_HOST=169.254.169.254", NULL};
	AUTO_ENVIRON_BLOCK struct environ_block block = {0};
	AUTO_RUN struct run run;

	(void)state;
	run_init(&run, (const char *const[]){"--env-force", "GCE_METADATA_HOST", "image", NULL});
	run.caller.environ = (char *const *)variables_here;
	const struct plan *const plan = plan_good(&run);
	bind_session(&run);
	plan_run_environ(plan, &block);
	assert_string_equal(value_in(&block, "GCE_METADATA_HOST"), ENDPOINT);
	assert_int_equal(plan->refused.count, 1);
}

static void the_session_outlives_the_timeout_by_a_minute(void **state)
{
	AUTO_RUN struct run run;

	(void)state;
	run_init(&run, (const char *const[]){"--timeout", "10m", "image", NULL});
	const struct plan *const plan = plan_good(&run);
	assert_int_equal(plan->timeout_s, 600);
	assert_int_equal(plan->session.ttl_s, 660);
}

static void a_users_name_becomes_an_owner_that_splits(void **state)
{
	AUTO_RUN struct run run;

	(void)state;
	run_init(&run, (const char *const[]){"image", NULL});
	run.caller.user = (char *)"first.last-2@corp";
	assert_string_equal(plan_good(&run)->owner, "first_last_2_corp");
}

static void a_terminal_is_allocated_only_where_there_is_one(void **state)
{
	AUTO_RUN struct run without;
	AUTO_RUN struct run with;

	(void)state;
	run_init(&without, (const char *const[]){"--tty", "image", NULL});
	assert_int_equal(plan_bad(&without), ERR_USAGE);
	run_init(&with, (const char *const[]){"--tty", "image", NULL});
	with.caller.terminal = true;
	const struct plan *const plan = plan_good(&with);
	assert_true(has(plan, "--tty") && has(plan, "--interactive"));
}

static void a_working_directory_lies_in_the_workspace(void **state)
{
	char top[] = "/tmp/postern-plan-XXXXXX";
	AUTO_RUN struct run good;
	AUTO_RUN struct run bad;

	(void)state;
	assert_non_null(mkdtemp(top));
	run_init(&good, (const char *const[]){"--workspace", top, "image", NULL});
	const struct plan *const plan = plan_good(&good);
	assert_true(has(plan, "--workdir=/workspace"));
	AUTO_FREE char *home = xasprintf("%s/home", top);
	assert_string_equal(plan->home_to_make, home);
	assert_int_equal(plan->home_uid, 1234);
	run_init(&bad, (const char *const[]){"--workspace", top, "--engine-arg", "--workdir=/etc",
					     "image", NULL});
	assert_int_equal(plan_bad(&bad), ERR_UNSUPPORTED);
	(void)rmdir(top);
}

static void a_read_only_root_gets_a_tmp_that_everybody_may_write(void **state)
{
	AUTO_RUN struct run run;
	AUTO_RUN struct run own;

	(void)state;
	run_init(&run, (const char *const[]){"--engine-arg", "--read-only=true", "image", NULL});
	assert_true(has(plan_good(&run), "--tmpfs=/tmp:rw,nosuid,nodev,mode=1777"));
	run_init(&own, (const char *const[]){"--engine-arg", "--read-only=true", "--engine-arg",
					     "--tmpfs=/tmp:size=1m", "image", NULL});
	assert_false(has(plan_good(&own), "--tmpfs=/tmp:rw,nosuid,nodev,mode=1777"));
}

static void two_things_at_one_place_are_refused(void **state)
{
	AUTO_RUN struct run run;

	(void)state;
	run_init(&run, (const char *const[]){"--mount", "/usr/share:/x", "--mount", "/usr/lib:/x",
					     "image", NULL});
	assert_int_equal(plan_bad(&run), ERR_USAGE);
}

static void a_run_without_a_way_to_the_host_is_warned_of(void **state)
{
	AUTO_RUN struct run run;

	(void)state;
	run_init(&run, (const char *const[]){"--network", "none", "image", NULL});
	run.engine.rootless = true;
	assert_int_equal(plan_good(&run)->warnings.count, 2);
}

static void both_prints_hold_every_name_and_no_value(void **state)
{
	static const char *const variables_here[] = {"MY_KEY=canary", "GITHUB_TOKEN=canary", NULL};
	AUTO_BUF struct buf text;
	AUTO_BUF struct buf json;
	AUTO_RUN struct run run;
	json_error_t error;

	(void)state;
	buf_init(&text, PLAN_PRINT_MAX_BYTES);
	buf_init(&json, PLAN_PRINT_MAX_BYTES);
	run_init(&run, (const char *const[]){"--env", "MY_KEY", "--env", "GITHUB_TOKEN", "--agent",
					     "openclaw", "image", "say", "it's \xff", NULL});
	run.caller.environ = (char *const *)variables_here;
	const struct plan *const plan = plan_good(&run);
	bind_session(&run);
	plan_print(plan, &text);
	plan_print_json(plan, &json);
	assert_null(strstr(text.data, "canary"));
	assert_null(strstr(json.data, "canary"));
	assert_null(strstr(text.data, PRESET_KEY_MARKER));
	assert_null(strstr(json.data, PRESET_KEY_MARKER));
	assert_non_null(strstr(text.data, "1 variable refused: GITHUB_TOKEN"));
	json_auto_t *object = json_loads(json.data, JSON_REJECT_DUPLICATES, &error);
	assert_non_null(object);
	const json_t *const variables = json_object_get(object, "variables");
	assert_int_equal(json_array_size(variables), plan->container.count);
	assert_int_equal(json_array_size(json_object_get(object, "argv")), plan->argv.count);
	for (size_t i = 0; i < plan->container.count; i++)
		assert_non_null(strstr(text.data, plan->container.items[i].name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_sandbox_is_confined),
		cmocka_unit_test(by_itself_it_wires_the_session_and_home_and_nothing_more),
		cmocka_unit_test(
			no_value_is_in_the_argument_vector_and_each_is_in_the_clients_environment),
		cmocka_unit_test(an_unset_variable_is_named_and_has_no_value_anywhere),
		cmocka_unit_test(the_operators_docker_host_does_not_cross_by_its_name),
		cmocka_unit_test(podman_unsets_by_a_flag_of_its_own),
		cmocka_unit_test(the_way_to_the_host_is_the_versions),
		cmocka_unit_test(the_user_is_the_callers_the_images_or_1000),
		cmocka_unit_test(ids_that_engines_refuse_are_an_error_with_the_repair),
		cmocka_unit_test(a_keyed_run_opens_no_session_and_sets_no_metadata_variable),
		cmocka_unit_test(a_keyless_provider_without_a_recipe_is_refused_before_anything),
		cmocka_unit_test(routing_follows_the_profile_and_a_keyed_run_gets_the_callers),
		cmocka_unit_test(another_project_than_the_profiles_is_refused),
		cmocka_unit_test(the_kubeconfig_crosses_as_a_directory_that_is_read_only),
		cmocka_unit_test(a_session_may_set_no_variable_that_the_sandbox_owns),
		cmocka_unit_test(a_second_session_takes_the_place_of_the_first),
		cmocka_unit_test(the_sessions_own_win_over_what_the_caller_asked_for),
		cmocka_unit_test(the_session_outlives_the_timeout_by_a_minute),
		cmocka_unit_test(a_users_name_becomes_an_owner_that_splits),
		cmocka_unit_test(a_terminal_is_allocated_only_where_there_is_one),
		cmocka_unit_test(a_working_directory_lies_in_the_workspace),
		cmocka_unit_test(a_read_only_root_gets_a_tmp_that_everybody_may_write),
		cmocka_unit_test(two_things_at_one_place_are_refused),
		cmocka_unit_test(a_run_without_a_way_to_the_host_is_warned_of),
		cmocka_unit_test(both_prints_hold_every_name_and_no_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
