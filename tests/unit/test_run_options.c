/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/plan/options.h"

#include "broker/base/buf.h"
#include "broker/base/err.h"
#include "sandbox/plan/engine_args.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MAX_ARGUMENTS 64

static int parse(struct run_options *out, const char *const arguments[], struct err *err)
{
	static char *argv[MAX_ARGUMENTS + 2];
	int argc = 1;

	argv[0] = (char *)"run";
	for (; arguments[argc - 1]; argc++)
		argv[argc] = (char *)arguments[argc - 1];
	argv[argc] = NULL;
	return run_options_parse(out, argc, argv, err);
}

static void an_image_alone_has_every_default(void **state)
{
	AUTO_RUN_OPTIONS struct run_options options;
	struct err err = {0};

	(void)state;
	assert_int_equal(parse(&options, (const char *const[]){"image:1", NULL}, &err), 0);
	assert_string_equal(options.image, "image:1");
	assert_null(options.command[0]);
	assert_null(options.profile);
	assert_int_equal(options.engine, ENGINE_DOCKER);
	assert_int_equal(options.preflight, PREFLIGHT_GRANT);
	assert_int_equal(options.attach, ATTACH_INSIDE);
	assert_int_equal(options.shut.count, 0);
	assert_int_equal(run_options_stdio(&options), STDIO_OUTPUT);
	assert_int_equal(options.timeout_s, 0);
}

static const char *const every_option[] = {"--profile",
					   "p",
					   "--agent",
					   "claude-code",
					   "--kubeconfig",
					   "k",
					   "--context",
					   "c",
					   "--workspace",
					   "w",
					   "--env",
					   "A",
					   "--env=B",
					   "--env-force",
					   "C",
					   "--mount",
					   "/a:/b",
					   "--mount",
					   "/c:/d:ro",
					   "--network",
					   "net-1",
					   "--user",
					   "1:2",
					   "--owner",
					   "me_1",
					   "--timeout",
					   "45m",
					   "--interactive",
					   "--preflight",
					   "mint",
					   "--attach",
					   "gateway",
					   "--engine",
					   "podman",
					   "--engine-arg",
					   "--memory=1g",
					   "--engine-arg=--cpus=2",
					   "--allow-admin-kubeconfig",
					   "--allow-unverified-firewall",
					   "--dry-run",
					   "--json",
					   "image",
					   "command",
					   "--flag",
					   "arg",
					   NULL};

static void every_option_of_the_issue_is_read(void **state)
{
	AUTO_RUN_OPTIONS struct run_options o;
	struct err err = {0};

	(void)state;
	if (parse(&o, every_option, &err))
		fail_msg("%s", err.text);
	assert_string_equal(o.profile, "p");
	assert_string_equal(o.agent, "claude-code");
	assert_string_equal(o.kubeconfig, "k");
	assert_string_equal(o.context, "c");
	assert_string_equal(o.workspace, "w");
	assert_int_equal(o.env.count, 2);
	assert_string_equal(o.env.items[1], "B");
	assert_string_equal(o.env_force.items[0], "C");
	assert_int_equal(o.mounts.count, 2);
	assert_string_equal(o.network, "net-1");
	assert_string_equal(o.user, "1:2");
	assert_string_equal(o.owner, "me_1");
	assert_int_equal(o.timeout_s, 45 * 60);
	assert_int_equal(run_options_stdio(&o), STDIO_INTERACTIVE);
	assert_int_equal(o.preflight, PREFLIGHT_MINT);
	assert_int_equal(o.attach, ATTACH_GATEWAY);
	assert_int_equal(o.engine, ENGINE_PODMAN);
	assert_int_equal(o.engine_args.count, 2);
	assert_true(o.allow_admin_kubeconfig && o.allow_unverified_firewall && o.dry_run && o.json);
	assert_string_equal(o.image, "image");
	assert_string_equal(o.command[0], "command");
	assert_string_equal(o.command[1], "--flag");
	assert_null(o.command[3]);
}

/* Usage: what it is, and a word of what is said. */
static const struct {
	const char *arguments[8];
	const char *said;
} usage[] = {
	{{NULL}, "no image"},
	{{""}, "no image"},
	{{"--"}, "no image"},
	{{"--", "-x"}, "may not begin"},
	{{"--nonsense", "i"}, "unknown option"},
	{{"--prof", "p", "i"}, "unknown option"},
	{{"-x", "i"}, "unknown option"},
	{{"--profile"}, "--profile needs NAME"},
	{{"--profile", "", "i"}, "blank"},
	{{"--profile", "a", "--profile", "b", "i"}, "given twice"},
	{{"--dry-run=yes", "i"}, "takes no argument"},
	{{"--profile", "a", "--provider", "google", "i"}, "keep one"},
	{{"--context", "c", "i"}, "--kubeconfig"},
	{{"--json", "i"}, "--dry-run"},
	{{"--tty", "--interactive", "i"}, "--tty"},
	{{"--env", "A=b", "i"}, "takes a name only"},
	{{"--env-force", "A=b", "i"}, "takes a name only"},
	{{"--env", "1A", "i"}, "must be a name"},
	{{"--env", "A*", "i"}, "must be a name"},
	{{"--env", "A B", "i"}, "must be a name"},
	{{"--owner", "a-b", "i"}, "letters, digits"},
	{{"--user", "root", "i"}, "--user"},
	{{"--user", "1:", "i"}, "--user"},
	{{"--user", "-1", "i"}, "--user"},
	{{"--user", "2147483648", "i"}, "2147483647"},
	{{"--user", "4294967296:1", "i"}, "1000:1000"},
	{{"--timeout", "45", "i"}, "duration"},
	{{"--timeout", "0s", "i"}, "duration"},
	{{"--timeout", "721h", "i"}, "duration"},
	{{"--preflight", "maybe", "i"}, "grant, mint, none"},
	{{"--attach", "outside", "i"}, "inside, gateway"},
	{{"--shut", "nowhere", "i"}, "must be a network"},
	{{"--shut", "10.0.0.1/8", "i"}, "must be a network"},
	{{"--shut", "0.0.0.0/0", "i"}, "must be a network"},
	{{"--shut", "169.254.0.0/16", "i"}, "add --shut fd20:ce::254"},
	{{"--shut", "fd20:ce::/32", "i"}, "add --shut 169.254.169.254"},
	{{"--attach", "gateway", "--shut", "169.254.0.0/16", "i"}, "only a door"},
	{{"--engine", "lxc", "i"}, "docker, podman, none"},
	{{"--network", "name=host", "i"}, "must be a network's name"},
	{{"--network", "host,alias=x", "i"}, "must be a network's name"},
	{{"--network", "-x", "i"}, "must be a network's name"},
	{{"--engine-arg", "--entrypoint=x", "i"}, "must be --NAME=VALUE"},
	{{"--engine-arg", "--memory", "i"}, "must be --NAME=VALUE"},
	{{"--engine-arg", "memory=1g", "i"}, "must be --NAME=VALUE"},
	{{"--engine-arg", "--memory=", "i"}, "must be --NAME=VALUE"},
	{{"--engine", "none"}, "no command"},
	{{"--engine", "none", "--dry-run", "c"}, "--engine none"},
};

static void what_is_off_is_usage_and_says_what_would_be_right(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(usage); i++) {
		AUTO_RUN_OPTIONS struct run_options options;
		struct err err = {0};
		if (!parse(&options, usage[i].arguments, &err))
			fail_msg("%zu was taken", i);
		assert_int_equal(err.code, ERR_USAGE);
		if (!strstr(err.text, usage[i].said))
			fail_msg("%zu: %s", i, err.text);
	}
}

/* Engines' options that would open the sandbox, bare and by --engine-arg. */
static const char *const opening[] = {
	"--privileged",	    "--cap-add=ALL", "--device=/dev/kvm", "--pid=host",
	"--ipc=host",	    "--uts=host",    "--userns=host",	  "--cgroupns=host",
	"--security-opt=x", "--volume=/:/x", "--volumes-from=x",  "--env-file=x",
	"--publish=80",	    "--add-host=x",  "--net=host",	  "--group-add=docker",
};

static void what_opens_the_sandbox_is_refused_by_name(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(opening); i++) {
		char name[64];
		(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(opening[i], "="),
			       opening[i]);
		const char *const forms[][4] = {{opening[i], "image", NULL},
						{"--engine-arg", opening[i], "image", NULL}};
		for (size_t form = 0; form < ARRAY_LEN(forms); form++) {
			AUTO_RUN_OPTIONS struct run_options options;
			struct err err = {0};
			assert_int_equal(parse(&options, forms[form], &err), -1);
			assert_int_equal(err.code, ERR_UNSUPPORTED);
			assert_non_null(strstr(err.text, name));
			assert_non_null(strstr(err.text, "refused"));
		}
	}
}

static void networks_that_share_a_namespace_are_refused_by_name(void **state)
{
	static const char *const networks[] = {"host", "container:x", "ns:/proc/1/ns/net"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(networks); i++) {
		AUTO_RUN_OPTIONS struct run_options options;
		struct err err = {0};
		const char *const arguments[] = {"--network", networks[i], "image", NULL};
		assert_int_equal(parse(&options, arguments, &err), -1);
		assert_int_equal(err.code, ERR_UNSUPPORTED);
		assert_non_null(strstr(err.text, "is refused"));
	}
}

/* The issue's list. */
static const char *const passed[] = {
	"memory",   "memory-swap", "cpus",     "cpu-shares", "cpuset-cpus", "ulimit",
	"shm-size", "label",	   "hostname", "log-driver", "log-opt",	    "stop-timeout",
	"platform", "pull",	   "workdir",  "read-only",  "tmpfs",	    "gpus",
};

static void the_engines_options_of_the_issue_pass(void **state)
{
	struct err err = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(passed); i++) {
		char arg[64];
		(void)snprintf(arg, sizeof(arg), "--%s=x", passed[i]);
		assert_int_equal(engine_arg_check(arg, &err), 0);
	}
}

static void a_label_may_not_look_like_the_launchers(void **state)
{
	struct err err = {0};

	(void)state;
	assert_int_equal(engine_arg_check("--label=postern.owner=other", &err), -1);
	assert_int_equal(err.code, ERR_UNSUPPORTED);
	assert_int_equal(engine_arg_check("--label=team=postern", &err), 0);
}

static void a_value_that_was_mistyped_as_an_option_is_not_shown(void **state)
{
	AUTO_RUN_OPTIONS struct run_options options;
	struct err err = {0};

	(void)state;
	assert_int_equal(parse(&options, (const char *const[]){"--enf=KEY=canary", "i", NULL},
			       &err),
			 -1);
	assert_null(strstr(err.text, "canary"));
	run_options_deinit(&options);
	assert_int_equal(parse(&options, (const char *const[]){"--env=KEY=canary", "i", NULL},
			       &err),
			 -1);
	assert_null(strstr(err.text, "canary"));
}

static void without_an_engine_all_that_follows_is_the_command(void **state)
{
	AUTO_RUN_OPTIONS struct run_options options;
	struct err err = {0};

	(void)state;
	assert_int_equal(parse(&options,
			       (const char *const[]){"--engine", "none", "--", "-c", "x", NULL},
			       &err),
			 0);
	assert_null(options.image);
	assert_string_equal(options.command[0], "-c");
	assert_string_equal(options.command[1], "x");
}

static void help_lists_every_option_preset_and_provider(void **state)
{
	static const char *const words[] = {"--profile",	"--provider",
					    "--agent",		"--env-force",
					    "--engine-arg",	"--allow-unverified-firewall",
					    "gemini-cli",	"openclaw",
					    "anthropic-bedrock"};
	AUTO_BUF struct buf text;

	(void)state;
	buf_init(&text, (size_t)16 << 10);
	run_options_help(&text);
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		assert_non_null(strstr(text.data, words[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_image_alone_has_every_default),
		cmocka_unit_test(every_option_of_the_issue_is_read),
		cmocka_unit_test(what_is_off_is_usage_and_says_what_would_be_right),
		cmocka_unit_test(what_opens_the_sandbox_is_refused_by_name),
		cmocka_unit_test(networks_that_share_a_namespace_are_refused_by_name),
		cmocka_unit_test(the_engines_options_of_the_issue_pass),
		cmocka_unit_test(a_label_may_not_look_like_the_launchers),
		cmocka_unit_test(a_value_that_was_mistyped_as_an_option_is_not_shown),
		cmocka_unit_test(without_an_engine_all_that_follows_is_the_command),
		cmocka_unit_test(help_lists_every_option_preset_and_provider),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
