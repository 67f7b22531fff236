/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/options.h"

#include "broker/base/buf.h"
#include "broker/base/err.h"
#include "broker/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define MAX_ARGUMENTS 16
#define ACCOUNT "--service-account", "a@p.iam.gserviceaccount.com"
#define REQUIRED ACCOUNT, "--project", "my-project"

static int parse(struct options *options, const char *const arguments[], struct err *err)
{
	char *argv[MAX_ARGUMENTS + 2] = {"posternd"};
	int argc = 1;

	for (; arguments[argc - 1]; argc++)
		argv[argc] = (char *)arguments[argc - 1];
	return options_parse(options, argc, argv, err);
}

static struct config *configure(const char *const arguments[], struct err *err)
{
	struct options options;
	struct config *config = NULL;

	if (parse(&options, arguments, err))
		return NULL;
	return options_to_config(&options, &config, err) ? NULL : config;
}

static struct config *configure_good(const char *const arguments[])
{
	struct err err = {0};
	struct config *const config = configure(arguments, &err);

	if (!config) {
		fail_msg("%s", err.text);
		abort(); /* never reached; clang-tidy does not know fail_msg() */
	}
	return config;
}

static void no_arguments_mean_the_default_file(void **state)
{
	struct options options;
	struct err err;

	(void)state;
	assert_int_equal(parse(&options, (const char *const[]){NULL}, &err), 0);
	assert_int_equal(options.action, OPTIONS_SERVE);
	assert_string_equal(options.config_path, "/etc/postern/postern.conf");
	assert_int_equal(parse(&options, (const char *const[]){"--check-config", NULL}, &err), 0);
	assert_int_equal(options.action, OPTIONS_CHECK_CONFIG);
	assert_string_equal(options.config_path, "/etc/postern/postern.conf");
	assert_int_equal(parse(&options, (const char *const[]){"--config=f", NULL}, &err), 0);
	assert_string_equal(options.config_path, "f");
}

static void help_and_version_win_over_what_is_missing(void **state)
{
	struct options options;
	struct err err;

	(void)state;
	assert_int_equal(parse(&options, (const char *const[]){"--listen", "x", "--version", NULL},
			       &err),
			 0);
	assert_int_equal(options.action, OPTIONS_VERSION);
	assert_int_equal(parse(&options, (const char *const[]){"--version", "--help", NULL}, &err),
			 0);
	assert_int_equal(options.action, OPTIONS_HELP);
}

static void a_command_line_that_is_off_is_refused_with_the_repair(void **state)
{
	static const struct {
		const char *arguments[MAX_ARGUMENTS];
		const char *what;
	} cases[] = {
		{{"--frobnicate"}, "unknown option \"--frobnicate\"; --help"},
		{{"-x"}, "unknown option \"-x\""},
		{{"-\xff"}, "unknown option \"-\\xff\""},
		{{"--config", "f", "-hx"}, "unknown option \"-hx\""},
		{{"--frob\nnicate"}, "unknown option \"--frob\\x0anicate\""},
		{{"--config"}, "--config needs FILE"},
		{{REQUIRED, "--listen"}, "--listen needs ADDR:PORT"},
		{{ACCOUNT, "--project", ""}, "--project is blank; give P"},
		{{REQUIRED, "--control="}, "--control is blank; give PATH"},
		{{"--conf", "f"}, "unknown option \"--conf\""},
		{{"--tokne=value"}, "unknown option \"--tokne\"; --help"},
		{{"--help=now"}, "--help takes no argument"},
		{{"--check-config=x"}, "--check-config takes no argument"},
		{{"postern.conf"}, "\"postern.conf\" is no option"},
		{{REQUIRED, "--", "--help"}, "\"--help\" is no option"},
		{{"--config", "a", "--config", "b"}, "--config is given twice"},
		{{"--check-config", "--check-config"}, "--check-config is given twice"},
		{{"--config", "f", REQUIRED}, "--service-account beside --config"},
		{{"--config", "f", "--control", "/c"}, "--control beside --config"},
		{{"--config", "f", "--ca-file", "/c"}, "--ca-file beside --config"},
		{{"--allow-wildcard-listen", "--config", "f"},
		 "--allow-wildcard-listen beside --config"},
		{{ACCOUNT}, "--service-account needs --project P"},
		{{"--project", "p"}, "--project needs --service-account SA"},
		{{"--listen", "127.0.0.1:0"}, "--listen needs --service-account SA"},
		{{"--check-config", "--source", "offline"}, "--source needs --service-account SA"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct options options;
		struct err err = {0};
		if (!parse(&options, cases[i].arguments, &err))
			fail_msg("accepted, not \"%s\"", cases[i].what);
		assert_int_equal(err.code, ERR_USAGE);
		if (!strstr(err.text, cases[i].what))
			fail_msg("\"%s\" does not say \"%s\"", err.text, cases[i].what);
	}
}

static void flags_make_one_profile_named_default(void **state)
{
	char text[ADDRESS_TEXT_SIZE];

	(void)state;
	AUTO_CONFIG struct config *config = configure_good(
		(const char *const[]){REQUIRED, "--listen", "[::1]:0", "--source",
				      "file:/etc/a:b.json", "--lifetime", "30m", "--control",
				      "/run/c.sock", "--ca-file", "/ca.pem", NULL});
	assert_null(config->path);
	assert_int_equal(config->profile_count, 1);
	const struct profile_config *const profile = config_find_profile(config, "default");
	assert_non_null(profile);
	assert_string_equal(profile->service_account, "a@p.iam.gserviceaccount.com");
	assert_string_equal(profile->project, "my-project");
	assert_string_equal(address_format(&profile->listen, text), "[::1]:0");
	assert_int_equal(profile->lifetime_s, 1800);
	assert_string_equal(config->source.type, "file");
	assert_string_equal(config->source.file, "/etc/a:b.json");
	assert_string_equal(config->broker.control_socket, "/run/c.sock");
	assert_string_equal(config->endpoints.ca_file, "/ca.pem");
}

static void what_the_flags_do_not_say_has_the_default(void **state)
{
	(void)state;
	AUTO_CONFIG struct config *config = configure_good((const char *const[]){REQUIRED, NULL});
	assert_string_equal(config->source.type, "adc");
	assert_null(config->broker.control_socket);
	assert_int_equal(config->broker.max_sessions, 1024);
	assert_string_equal(config->endpoints.iam, "https://iam.googleapis.com");
	assert_int_equal(config->profiles[0].lifetime_s, 3600);
	assert_false(address_is_set(&config->profiles[0].listen));
}

static void a_path_is_relative_to_where_it_was_typed(void **state)
{
	AUTO_FREE char *here = get_current_dir_name();
	char expected[4096];

	(void)state;
	AUTO_CONFIG struct config *config =
		configure_good((const char *const[]){REQUIRED, "--source", "file:x.json",
						     "--ca-file", "certs/ca.pem", NULL});
	(void)snprintf(expected, sizeof(expected), "%s/x.json", here);
	assert_string_equal(config->source.file, expected);
	(void)snprintf(expected, sizeof(expected), "%s/certs/ca.pem", here);
	assert_string_equal(config->endpoints.ca_file, expected);
}

static void a_bad_value_is_refused_by_the_name_of_its_flag(void **state)
{
	static const struct {
		const char *arguments[MAX_ARGUMENTS];
		const char *start;
		const char *repair;
	} cases[] = {
		{{REQUIRED, "--lifetime", "5"}, "--lifetime \"5\": ", "duration from 5m to 12h"},
		{{"--service-account", "a", "--project", "p"},
		 "--service-account \"a\": ",
		 "e-mail address"},
		{{"--service-account", "a@p.test\n", "--project", "p"},
		 "--service-account \"a@p.test\\x0a\": ",
		 "holds \"\\x0a\""},
		{{ACCOUNT, "--project", "P"}, "--project \"P\": ", "project id"},
		{{REQUIRED, "--listen", "8174"}, "--listen \"8174\": ", "ADDRESS:PORT"},
		{{REQUIRED, "--listen", "0.0.0.0:1"},
		 "--listen \"0.0.0.0:1\": ",
		 "--allow-wildcard-listen"},
		{{REQUIRED, "--source", "vault"},
		 "--source \"vault\": ",
		 "supported: adc, file, gcloud, metadata, offline"},
		{{REQUIRED, "--source", "file"}, "--source \"file\": ", "file:PATH"},
		{{REQUIRED, "--source", "file:"}, "--source \"\": ", "absolute path"},
		{{REQUIRED, "--source", "offline:/x"}, "--source \"/x\": ", "type = file"},
		{{REQUIRED, "--control", "/a\nb"}, "--control \"/a\\x0ab\": ", "absolute path"},
		{{REQUIRED, "--ca-file", "/etc/"}, "--ca-file \"/etc/\": ", "absolute path"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = {0};
		AUTO_CONFIG struct config *config = configure(cases[i].arguments, &err);
		assert_null(config);
		if (strncmp(err.text, cases[i].start, strlen(cases[i].start)) != 0)
			fail_msg("\"%s\" does not begin with \"%s\"", err.text, cases[i].start);
		if (!strstr(err.text, cases[i].repair))
			fail_msg("\"%s\" does not say \"%s\"", err.text, cases[i].repair);
	}
}

static void a_wildcard_is_taken_where_the_flag_allows_it(void **state)
{
	(void)state;
	AUTO_CONFIG struct config *config =
		configure_good((const char *const[]){REQUIRED, "--listen", "0.0.0.0:0",
						     "--allow-wildcard-listen", NULL});
	assert_true(address_is_wildcard(&config->profiles[0].listen));
}

static void a_file_is_read_where_one_is_named(void **state)
{
	char path[] = "/tmp/postern-options-XXXXXX";
	static const char text[] = "[profile p]\nservice_account = a@p.test\nproject = p\n";

	(void)state;
	AUTO_CLOSE int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, sizeof(text) - 1), (int)sizeof(text) - 1);
	AUTO_CONFIG struct config *config =
		configure_good((const char *const[]){"--config", path, "--check-config", NULL});
	unlink(path);
	assert_string_equal(config->path, path);
}

static void the_help_names_every_option_of_the_page(void **state)
{
	static const char *const options[] = {
		"--config FILE",
		"--check-config",
		"--version",
		"--help",
		"--service-account SA",
		"--project P",
		"--listen ADDR:PORT",
		"--source TYPE[:FILE]",
		"--lifetime D",
		"--control PATH",
		"--allow-wildcard-listen",
		"--ca-file FILE",
	};
	AUTO_BUF struct buf help;

	(void)state;
	buf_init(&help, 4096);
	options_help(&help);
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		if (!strstr(help.data, options[i]))
			fail_msg("%s is not in the help", options[i]);
	assert_int_equal(ARRAY_LEN(options), OPTION_COUNT);
}

static void the_environment_is_read_and_empty_is_unset(void **state)
{
	struct environment environment;

	(void)state;
	setenv("GOOGLE_APPLICATION_CREDENTIALS", "/adc.json", 1);
	setenv("CLOUDSDK_CONFIG", "", 1);
	setenv("HOME", "/home/x", 1);
	unsetenv("XDG_RUNTIME_DIR");
	setenv("https_proxy", "http://lower", 1);
	setenv("HTTPS_PROXY", "http://upper", 1);
	setenv("no_proxy", "", 1);
	setenv("NO_PROXY", "upper.test", 1);
	setenv("JOURNAL_STREAM", "8:1", 1);
	environment_read(&environment);
	assert_string_equal(environment.google_application_credentials, "/adc.json");
	assert_null(environment.cloudsdk_config);
	assert_string_equal(environment.home, "/home/x");
	assert_null(environment.xdg_runtime_dir);
	assert_string_equal(environment.https_proxy, "http://lower");
	assert_string_equal(environment.no_proxy, "upper.test");
	assert_string_equal(environment.journal_stream, "8:1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_arguments_mean_the_default_file),
		cmocka_unit_test(help_and_version_win_over_what_is_missing),
		cmocka_unit_test(a_command_line_that_is_off_is_refused_with_the_repair),
		cmocka_unit_test(flags_make_one_profile_named_default),
		cmocka_unit_test(what_the_flags_do_not_say_has_the_default),
		cmocka_unit_test(a_path_is_relative_to_where_it_was_typed),
		cmocka_unit_test(a_bad_value_is_refused_by_the_name_of_its_flag),
		cmocka_unit_test(a_wildcard_is_taken_where_the_flag_allows_it),
		cmocka_unit_test(a_file_is_read_where_one_is_named),
		cmocka_unit_test(the_help_names_every_option_of_the_page),
		cmocka_unit_test(the_environment_is_read_and_empty_is_unset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
