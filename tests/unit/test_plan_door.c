/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans of --attach inside: which container gets what.
 */
#include "sandbox/plan/plan_door.h"

#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/base/err.h"
#include "broker/base/strv.h"
#include "tests/unit/plan_fixture.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ADDRESS "169.254.169.254"
#define ID "4f0c4f0c4f0c4f0c4f0c4f0c4f0c4f0c4f0c4f0c4f0c4f0c4f0c4f0c4f0c4f0c"

static void run_init(struct run *run, const char *const arguments[])
{
	static const char *const variables_here[] = {"HOME=/home/me", "PATH=/bin", "MY_KEY=canary",
						     NULL};

	run_init_attached(run, "inside", arguments);
	run->caller.environ = (char *const *)variables_here;
	run->engine.kernel = "6.1.0";
	run->engine.runtime = "runc";
	run->engine.image_is_here = true;
	run->inputs.control = "/srv/postern/control.sock";
	run->inputs.door_binary = "/usr/libexec/postern/postern-door";
	run->inputs.nameservers = &run->nameservers;
}

static void bind(struct run *run)
{
	static const char *const names[] = {"GCE_METADATA_HOST", "GCE_METADATA_IP",
					    "GCE_METADATA_ROOT", "NO_PROXY", "no_proxy"};
	AUTO_VARIABLES struct variables env = {0};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		variables_set(&env, names[i], VARIABLE_SESSION, ADDRESS);
	assert_int_equal(plan_bind_session(run->plan, SESSION_ID, &env, &run->err), 0);
	assert_int_equal(plan_bind_attach(run->plan, "/srv/elsewhere/attach", &run->err), 0);
	plan_bind_door(run->plan, ID);
}

static void has_all(const struct strv *list, const char *const *items)
{
	for (; *items; items++)
		if (!strv_contains(list, *items))
			fail_msg("%s is not there", *items);
}

static bool has_prefix(const struct strv *list, const char *prefix)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strncmp(list->items[i], prefix, strlen(prefix)))
			return true;
	return false;
}

static void the_door_has_what_it_needs_to_open_and_no_more(void **state)
{
	static const char *const flags[] = {
		"--name=postern-me-00112233aabbccdd-door",
		"--label=postern.owner=me",
		"--label=postern.session=0123456789abcdef",
		"--label=postern.launcher-pid=42",
		"--label=postern.launcher-start=4711",
		"--label=postern.launcher-namespace=4026531836",
		"--label=postern.role=door",
		"--cidfile=/run/postern-runs/00112233aabbccdd/door-cid",
		"--cap-drop=ALL",
		"--cap-add=NET_ADMIN",
		"--cap-add=NET_BIND_SERVICE",
		"--security-opt=no-new-privileges",
		"--read-only",
		"--user=0:0",
		"--entrypoint=/postern-door",
		"--no-healthcheck",
		"--sysctl=net.ipv4.conf.all.rp_filter=1",
		"--sysctl=net.ipv4.conf.all.arp_ignore=1",
		"--add-host=metadata.google.internal:169.254.169.254",
		"--add-host=metadata:169.254.169.254",
		"--add-host=host.docker.internal:host-gateway",
		"--network=none",
		"--hostname=h",
		"--platform=linux/amd64",
		"--mount=type=bind,src=/usr/libexec/postern/postern-door,dst=/postern-door,readonly",
		"--mount=type=bind,src=/srv/elsewhere/attach,dst=/attach,readonly",
		"--mount=type=bind,src=/run/postern-runs/00112233aabbccdd/door,dst=/door,readonly",
		NULL,
	};
	AUTO_RUN struct run run;

	(void)state;
	run_init(&run,
		 (const char *const[]){"--network", "none", "--env", "MY_KEY", "--mount",
				       "/usr/share:/data", "--engine-arg", "--hostname=h",
				       "--engine-arg", "--platform=linux/amd64", "--engine-arg",
				       "--memory=1g", "image", "command", NULL});
	const struct plan *const plan = plan_good(&run);
	bind(&run);
	assert_string_equal(plan->door.argv.items[1], "create");
	has_all(&plan->door.argv, flags);
	assert_false(has_prefix(&plan->door.argv, "--memory"));
	assert_false(strv_contains(&plan->door.argv, "-e"));
	assert_false(strv_contains(&plan->door.argv, "command"));
	assert_false(has_prefix(&plan->door.argv, "--mount=type=bind,src=/usr/share"));
	/* behind the image are its own arguments alone */
	for (size_t i = position(&plan->door.argv, "image") + 1; i < plan->door.argv.count; i += 2)
		assert_string_equal(plan->door.argv.items[i], "--shut");
}

static void the_sandbox_joins_the_door_by_its_full_id(void **state)
{
	/* Engines refuse these beside another container's network, or ignore them in silence. */
	static const char *const of_networks[] = {"--add-host", "--hostname", "--sysctl",
						  "--cap-add",	"--dns",      "--network=none"};
	static const char *const kept[] = {"--cap-drop=ALL", "--security-opt=no-new-privileges",
					   "--memory=1g", "--user=1234:1235", NULL};
	static const char *const start[] = {"/usr/bin/docker", "start", "--attach", "--interactive",
					    "postern-me-00112233aabbccdd"};
	AUTO_RUN struct run run;

	(void)state;
	run_init(&run, (const char *const[]){"--network", "none", "--interactive", "--engine-arg",
					     "--hostname=h", "--engine-arg", "--memory=1g", "image",
					     "command", NULL});
	const struct plan *const plan = plan_good(&run);
	assert_true(strv_contains(&plan->argv, "--network=container:DOOR"));
	bind(&run);
	assert_string_equal(plan->argv.items[1], "create");
	assert_true(strv_contains(&plan->argv, "--network=container:" ID));
	has_all(&plan->argv, kept);
	for (size_t i = 0; i < ARRAY_LEN(of_networks); i++)
		assert_false(has_prefix(&plan->argv, of_networks[i]));
	assert_string_equal(plan->argv.items[plan->argv.count - 1], "command");
	assert_int_equal(plan->start_argv.count, ARRAY_LEN(start));
	for (size_t i = 0; i < ARRAY_LEN(start); i++)
		assert_string_equal(plan->start_argv.items[i], start[i]);
}

static void what_the_sandbox_calls_its_endpoint_is_no_business_of_a_proxy(void **state)
{
	AUTO_ENVIRON_BLOCK struct environ_block block = {0};
	AUTO_RUN struct run run;
	const char *no_proxy = NULL;

	(void)state;
	run_init(&run, (const char *const[]){"image", NULL});
	const struct plan *const plan = plan_good(&run);
	bind(&run);
	plan_run_environ(plan, &block);
	for (size_t i = 0; i < block.count; i++)
		if (!strncmp(block.items[i], "NO_PROXY=", strlen("NO_PROXY=")))
			no_proxy = block.items[i];
	assert_string_equal(no_proxy, "NO_PROXY=169.254.169.254,metadata.google.internal,metadata");
}

static void resolvers_among_what_is_shut_stay_open(void **state)
{
	AUTO_RUN struct run run;

	(void)state;
	run_init(&run, (const char *const[]){"image", NULL});
	strv_addf(&run.nameservers, "168.63.129.16");
	strv_addf(&run.nameservers, "10.1.1.1");
	const struct plan *const plan = plan_good(&run);
	const size_t at = position(&plan->door.argv, "--dns");
	assert_int_equal(at, plan->door.argv.count - 2);
	assert_string_equal(plan->door.argv.items[at + 1], "168.63.129.16");
}

static void the_caller_s_list_of_what_is_shut_is_the_whole_list(void **state)
{
	AUTO_RUN struct run run;

	(void)state;
	run_init(&run, (const char *const[]){"--shut", "169.254.169.254", "--shut", "fd20:ce::/32",
					     "image", NULL});
	const struct plan *const plan = plan_good(&run);
	const struct strv *const argv = &plan->door.argv;
	assert_int_equal(argv->count - position(argv, "image"), 5);
	assert_string_equal(argv->items[argv->count - 3], "169.254.169.254");
	assert_string_equal(argv->items[argv->count - 1], "fd20:ce::/32");
}

/* When the image is pulled before the session opens; then nothing is pulled later. */
static const struct {
	const char *arguments[6];
	bool is_here;
	bool pulls;
} pulls[] = {
	{{"image"}, true, false},
	{{"image"}, false, true},
	{{"--engine-arg", "--pull=missing", "image"}, true, false},
	{{"--engine-arg", "--pull=missing", "image"}, false, true},
	{{"--engine-arg", "--pull=always", "image"}, true, true},
	{{"--engine-arg", "--pull=never", "image"}, false, false},
};

static void an_image_is_pulled_before_anything_that_has_a_time_limit(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(pulls); i++) {
		AUTO_RUN struct run run;
		run_init(&run, pulls[i].arguments);
		run.engine.image_is_here = pulls[i].is_here;
		const struct plan *const plan = plan_good(&run);
		assert_int_equal(plan->pull.count > 0, pulls[i].pulls);
		assert_false(strv_contains(&plan->argv, "--pull=always"));
		assert_false(strv_contains(&plan->door.argv, "--pull=always"));
	}
}

static void a_run_without_a_session_has_no_door(void **state)
{
	AUTO_RUN struct run run;

	(void)state;
	run_init(&run,
		 (const char *const[]){"--provider", "gemini", "--network", "net", "image", NULL});
	run.engine.runtime = "runsc"; /* which is none of its business */
	const struct plan *const plan = plan_good(&run);
	assert_false(plan->door.wanted);
	assert_int_equal(plan->door.argv.count + plan->start_argv.count + plan->pull.count, 0);
	assert_string_equal(plan->argv.items[1], "run");
	assert_true(strv_contains(&plan->argv, "--network=net"));
	assert_true(strv_contains(&plan->argv, "--add-host=host.docker.internal:host-gateway"));
}

static void a_missing_ability_is_refused_and_nothing_is_weaker_in_silence(void **state)
{
	AUTO_RUN struct run run;

	(void)state;
	run_init(&run, (const char *const[]){"image", NULL});
	run.engine.runtime = "kata";
	assert_int_equal(plan_new(&run.inputs, &run.plan, &run.err), -1);
	assert_int_equal(run.err.code, ERR_UNSUPPORTED);
}

static void a_place_that_no_engine_can_mount_is_refused(void **state)
{
	static const char *const directories[] = {"", "relative", "/a/../b", "/a,b", "/a\"b"};
	AUTO_RUN struct run run;
	AUTO_RUN struct run with_comma;

	(void)state;
	run_init(&run, (const char *const[]){"image", NULL});
	(void)plan_good(&run);
	for (size_t i = 0; i < ARRAY_LEN(directories); i++)
		assert_int_equal(plan_bind_attach(run.plan, directories[i], &run.err), -1);
	run_init(&with_comma, (const char *const[]){"image", NULL});
	with_comma.inputs.door_binary = "/opt/a,b/postern-door";
	assert_int_equal(plan_new(&with_comma.inputs, &with_comma.plan, &with_comma.err), -1);
	assert_int_equal(with_comma.err.code, ERR_INVALID);
}

static void both_prints_show_the_door_s_own_vector(void **state)
{
	AUTO_BUF struct buf text;
	AUTO_BUF struct buf json;
	AUTO_RUN struct run run;
	json_error_t error;

	(void)state;
	buf_init(&text, PLAN_PRINT_MAX_BYTES);
	buf_init(&json, PLAN_PRINT_MAX_BYTES);
	run_init(&run, (const char *const[]){"--env", "MY_KEY", "image", NULL});
	const struct plan *const plan = plan_good(&run);
	plan_print(plan, &text);
	plan_print_json(plan, &json);
	assert_non_null(strstr(text.data, "\ndoor argv\n"));
	assert_non_null(strstr(text.data, "\nstart argv\n"));
	assert_non_null(strstr(text.data, "src=/srv/postern/private/attach,dst=/attach,readonly"));
	assert_non_null(strstr(text.data, "attach       inside"));
	assert_null(strstr(text.data, "canary"));
	assert_null(strstr(json.data, "canary"));
	json_auto_t *object = json_loads(json.data, JSON_REJECT_DUPLICATES, &error);
	const json_t *const door = json_object_get(object, "door");
	assert_int_equal(json_array_size(json_object_get(door, "argv")), plan->door.argv.count);
	assert_int_equal(json_array_size(json_object_get(door, "shut")), 6);
	assert_int_equal(json_array_size(json_object_get(object, "start_argv")),
			 plan->start_argv.count);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_door_has_what_it_needs_to_open_and_no_more),
		cmocka_unit_test(the_sandbox_joins_the_door_by_its_full_id),
		cmocka_unit_test(what_the_sandbox_calls_its_endpoint_is_no_business_of_a_proxy),
		cmocka_unit_test(resolvers_among_what_is_shut_stay_open),
		cmocka_unit_test(the_caller_s_list_of_what_is_shut_is_the_whole_list),
		cmocka_unit_test(an_image_is_pulled_before_anything_that_has_a_time_limit),
		cmocka_unit_test(a_run_without_a_session_has_no_door),
		cmocka_unit_test(a_missing_ability_is_refused_and_nothing_is_weaker_in_silence),
		cmocka_unit_test(a_place_that_no_engine_can_mount_is_refused),
		cmocka_unit_test(both_prints_show_the_door_s_own_vector),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
