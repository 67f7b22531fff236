/* SPDX-License-Identifier: Apache-2.0 */
/* A subject token that a program prints: real scripts, by the rules of AIP-4117. */
#include "broker/credential/command_line.h"
#include "tests/unit/source_fixture.h"

#define FIELDS                                                                     \
	"\"type\":\"external_account\",\"audience\":\"//iam.googleapis.com/aud\"," \
	"\"subject_token_type\":\"urn:ietf:params:oauth:token-type:id_token\","    \
	"\"token_url\":\"https://sts.googleapis.com/v1/token\""
#define IMPERSONATION                                                                       \
	"\"service_account_impersonation_url\":\"https://iamcredentials.googleapis.com/v1/" \
	"projects/-/serviceAccounts/bastion@p.iam.gserviceaccount.com:generateAccessToken\""
#define GOOD                                              \
	"{\"version\":1,\"success\":true,\"token_type\":" \
	"\"urn:ietf:params:oauth:token-type:id_token\",\"id_token\":\"printed\""

static const char *const environment[] = {"PATH=/usr/bin:/bin", "NOTIFY_SOCKET=/run/x", NULL};

static int set_up(void **state)
{
	(void)state;
	source_set_up_loop();
	source.options.env_executables = "1";
	source.options.environment = environment;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	source_tear_down();
	return 0;
}

static void write_script(const char *body)
{
	AUTO_FREE char *text = xasprintf("#!/bin/sh\n%s\n", body);
	AUTO_FREE char *expanded = source_expand(text);

	source_write("program", 0700, expanded);
}

/* `executable` is the inside of the object, "@" the folder. */
static void open_executable(const char *executable, const char *more)
{
	AUTO_FREE char *text = xasprintf("{" FIELDS
					 ",\"credential_source\":{\"executable\":{%s}}%s}",
					 executable, more);
	AUTO_FREE char *expanded = source_expand(text);

	source_open_file(expanded);
}

static void run_script(const char *script)
{
	write_script(script);
	open_executable("\"command\":\"@/program one two\"", "");
	source_ask();
	source_turn();
}

static void the_printed_token_is_exchanged(void **state)
{
	(void)state;
	run_script("[ \"$*\" = 'one two' ] && echo '" GOOD ",\"expiration_time\":9999999999}'");
	assert_non_null(strstr(fake_http_request()->body, "&subject_token=printed&"));
	fake_http_answer(200, "{\"access_token\":\"t\",\"expires_in\":3599}", FAKE_WALL_S);
	source_has_token("t");
}

static void an_assertion_of_saml_has_a_field_of_its_own(void **state)
{
	(void)state;
	run_script("echo '{\"version\":1,\"success\":true,\"token_type\":"
		   "\"urn:ietf:params:oauth:token-type:saml2\",\"saml_response\":\"PHNhbWw+\"}'");
	assert_non_null(strstr(fake_http_request()->body, "&subject_token=PHNhbWw%2B&"));
	fake_http_fail(HTTP_FAILURE_CONNECT);
}

static void the_program_is_told_what_is_asked_for_and_nothing_of_the_manager(void **state)
{
	(void)state;
	write_script("env | grep -E '^(GOOGLE|NOTIFY)' | sort > @/env; echo '" GOOD "}'");
	open_executable("\"command\":\"@/program\",\"output_file\":\"@/left\"", "," IMPERSONATION);
	source_ask();
	source_turn();
	fake_http_fail(HTTP_FAILURE_CONNECT);
	char text[1024] = "";
	AUTO_FREE char *path = xasprintf("%s/env", source.dir);
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	AUTO_FREE char *expected = xasprintf(
		"GOOGLE_EXTERNAL_ACCOUNT_AUDIENCE=//iam.googleapis.com/aud\n"
		"GOOGLE_EXTERNAL_ACCOUNT_ID=bastion@p.iam.gserviceaccount.com\n"
		"GOOGLE_EXTERNAL_ACCOUNT_IMPERSONATED_EMAIL=bastion@p.iam.gserviceaccount.com\n"
		"GOOGLE_EXTERNAL_ACCOUNT_INTERACTIVE=0\n"
		"GOOGLE_EXTERNAL_ACCOUNT_OUTPUT_FILE=%s/left\n"
		"GOOGLE_EXTERNAL_ACCOUNT_REVOKE=0\n"
		"GOOGLE_EXTERNAL_ACCOUNT_TOKEN_TYPE=urn:ietf:params:oauth:token-type:id_token\n",
		source.dir);
	assert_string_equal(text, expected);
}

static void a_good_token_in_the_output_file_saves_the_run(void **state)
{
	(void)state;
	write_script("echo run >> @/ran; echo '" GOOD "}'");
	open_executable("\"command\":\"@/program\",\"output_file\":\"@/left\"", "");
	source_write("left", 0600,
		     "{\"version\":1,\"success\":true,\"token_type\":"
		     "\"urn:ietf:params:oauth:token-type:jwt\",\"id_token\":\"left\","
		     "\"expiration_time\":9999999999}");
	source_ask();
	source_turn();
	assert_non_null(strstr(fake_http_request()->body, "&subject_token=left&"));
	fake_http_fail(HTTP_FAILURE_CONNECT);
	AUTO_FREE char *ran = xasprintf("%s/ran", source.dir);
	assert_int_equal(access(ran, F_OK), -1);
}

static void check_left_is_not_used(const char *left)
{
	write_script("echo '" GOOD "}'");
	open_executable("\"command\":\"@/program\",\"output_file\":\"@/left\"", "");
	if (left)
		source_write("left", 0600, left);
	source_ask();
	source_turn();
	assert_non_null(strstr(fake_http_request()->body, "&subject_token=printed&"));
	fake_http_fail(HTTP_FAILURE_CONNECT);
}

#define LEFT                                              \
	"{\"version\":1,\"success\":true,\"token_type\":" \
	"\"urn:ietf:params:oauth:token-type:jwt\",\"id_token\":\"left\""

static void without_an_output_file_yet_the_program_runs(void **state)
{
	(void)state;
	check_left_is_not_used(NULL);
}

static void an_expired_token_in_the_output_file_is_not_used(void **state)
{
	(void)state;
	check_left_is_not_used(LEFT ",\"expiration_time\":1}");
}

static void a_token_without_an_end_in_the_output_file_is_not_used(void **state)
{
	(void)state;
	check_left_is_not_used(LEFT "}");
}

static void a_broken_output_file_is_not_used(void **state)
{
	(void)state;
	check_left_is_not_used("{\"version\":1,");
}

static void check_failure(const char *script, enum failure_class class, const char *reason)
{
	run_script(script);
	source_has_failed(class, reason, "the program of credential_source");
	assert_string_equal(failure_step_name(source.failure.step), "subject_token");
	assert_int_equal(fake_http.started, 0);
}

static void a_program_that_says_no_is_believed(void **state)
{
	(void)state;
	check_failure("echo '{\"version\":1,\"success\":false,\"code\":\"401\",\"message\":"
		      "\"SECRET words\"}'",
		      FAILURE_PERMANENT, "401");
}

static void a_program_that_fails_is_tried_again(void **state)
{
	(void)state;
	check_failure("echo '" GOOD "}'; echo SECRET >&2; exit 1", FAILURE_TRANSIENT,
		      "executable_failed");
}

static void a_program_that_is_killed_is_tried_again(void **state)
{
	(void)state;
	check_failure("kill -KILL $$", FAILURE_TRANSIENT, "executable_killed");
}

static void a_program_that_prints_too_much_is_killed(void **state)
{
	(void)state;
	check_failure("cat /dev/zero", FAILURE_TRANSIENT, "executable_output");
}

static void a_program_that_gives_an_expired_token_is_tried_again(void **state)
{
	(void)state;
	check_failure("echo '" GOOD ",\"expiration_time\":1}'", FAILURE_TRANSIENT,
		      "subject_token_expired");
}

static void a_program_that_is_gone_is_tried_again(void **state)
{
	(void)state;
	write_script("exit 0");
	open_executable("\"command\":\"@/program\"", "");
	AUTO_FREE char *path = xasprintf("%s/program", source.dir);
	assert_int_equal(unlink(path), 0);
	source_ask();
	source_turn();
	source_has_failed(FAILURE_TRANSIENT, "executable_start", "cannot be started");
}

/* Each as a whole answer; one run of a program, which prints what its file says. */
static const char *const broken[] = {
	"",
	"token",
	"[]",
	"{}",
	"{\"version\":2,\"success\":true}",
	"{\"version\":1}",
	"{\"version\":1,\"success\":\"true\"}",
	"{\"version\":1,\"success\":true}",
	"{\"version\":1,\"success\":true,\"token_type\":\"x\",\"id_token\":\"t\"}",
	"{\"version\":1,\"success\":true,\"token_type\":\"urn:ietf:params:oauth:token-type:jwt\"}",
	(LEFT ",\"expiration_time\":\"soon\"}"),
	"{\"version\":1,\"success\":false}",
	"{\"version\":1,\"success\":false,\"code\":\"1\"}",
};

static void an_answer_that_is_none_is_tried_again(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
		if (i) {
			source_tear_down();
			(void)set_up(state);
		}
		source_write("answer", 0600, broken[i]);
		check_failure("cat @/answer", FAILURE_TRANSIENT, "executable_answer");
	}
}

static void a_source_that_goes_takes_its_program_along(void **state)
{
	(void)state;
	write_script("sleep 60");
	open_executable("\"command\":\"@/program\"", "");
	source_ask();
	timer_queue_run(loop_timers(source.loop));
	credential_call_cancel(source.call);
	credential_free(source.credential);
	source.credential = NULL;
}

static void a_wrong_executable_is_refused(void **state)
{
	static const struct {
		const char *executable;
		const char *what;
		const char *repair;
	} cases[] = {
		{"{}", "field \"credential_source.executable.command\" is missing", "program"},
		{"\"/bin/true\"", "field \"credential_source.executable.command\" is missing",
		 "program"},
		{"{\"command\":\"true\"}", "field \"credential_source.executable.command\" is no",
		 "absolute path"},
		{"{\"command\":\" \"}", "field \"credential_source.executable.command\" is no",
		 "absolute path"},
		{"{\"command\":\"/bin/x \\\"a\"}",
		 "field \"credential_source.executable.command\" is no", "double quotes"},
		{"{\"command\":\"/bin/true\",\"timeout_millis\":4999}",
		 "field \"credential_source.executable.timeout_millis\" must be",
		 "from 5000 to 120000"},
		{"{\"command\":\"/bin/true\",\"timeout_millis\":120001}",
		 "field \"credential_source.executable.timeout_millis\" must be",
		 "from 5000 to 120000"},
		{"{\"command\":\"/bin/true\",\"timeout_millis\":\"5000\"}",
		 "field \"credential_source.executable.timeout_millis\" must be",
		 "from 5000 to 120000"},
		{"{\"command\":\"/bin/true\",\"output_file\":\"left\"}",
		 "field \"credential_source.executable.output_file\" is no absolute path",
		 "folders"},
	};
	static const char *const allowed[] = {NULL, "0", "true", "yes", "11"};
	char text[1024];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		(void)snprintf(text, sizeof(text),
			       "{" FIELDS ",\"credential_source\":{\"executable\":%s}}",
			       cases[i].executable);
		source_refused_file(text, cases[i].what, cases[i].repair);
	}
	for (size_t i = 0; i < ARRAY_LEN(allowed); i++) {
		source.options.env_executables = allowed[i];
		source_refused_file("{" FIELDS
				    ",\"credential_source\":{\"executable\":{\"command\":"
				    "\"/bin/true\"}}}",
				    "asks to run a program",
				    "GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES=1");
	}
}

static void a_command_is_split_as_the_libraries_do(void **state)
{
	static const struct {
		const char *command;
		const char *words; /* joined by "|"; NULL: refused */
	} cases[] = {
		{"/a", "/a"},
		{"  /a  b\tc\n", "/a|b|c"},
		{"/a \"b c\" d", "/a|b c|d"},
		{"\"/a b\" --x=\"y z\"", "/a b|--x=y z"},
		{"/a \"\" b", "/a||b"},
		{"/a $(id) 'x y' ; | > &", "/a|$(id)|'x|y'|;|\\||>|&"},
		{"", NULL},
		{" \t", NULL},
		{"/a \"b", NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_STRV struct strv argv = {0};
		char joined[128] = "";
		const int r = command_line_split(&argv, cases[i].command);
		assert_int_equal(r, cases[i].words ? 0 : -1);
		if (r)
			continue;
		for (size_t k = 0; k < argv.count; k++) {
			const size_t len = strlen(joined);
			(void)snprintf(joined + len, sizeof(joined) - len, "%s%s", k ? "|" : "",
				       strcmp(argv.items[k], "|") ? argv.items[k] : "\\|");
		}
		assert_string_equal(joined, cases[i].words);
	}
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(the_printed_token_is_exchanged),
		CASE(an_assertion_of_saml_has_a_field_of_its_own),
		CASE(the_program_is_told_what_is_asked_for_and_nothing_of_the_manager),
		CASE(a_good_token_in_the_output_file_saves_the_run),
		CASE(without_an_output_file_yet_the_program_runs),
		CASE(an_expired_token_in_the_output_file_is_not_used),
		CASE(a_token_without_an_end_in_the_output_file_is_not_used),
		CASE(a_broken_output_file_is_not_used),
		CASE(a_program_that_says_no_is_believed),
		CASE(a_program_that_fails_is_tried_again),
		CASE(a_program_that_is_killed_is_tried_again),
		CASE(a_program_that_prints_too_much_is_killed),
		CASE(a_program_that_gives_an_expired_token_is_tried_again),
		CASE(a_program_that_is_gone_is_tried_again),
		CASE(an_answer_that_is_none_is_tried_again),
		CASE(a_source_that_goes_takes_its_program_along),
		CASE(a_wrong_executable_is_refused),
		CASE(a_command_is_split_as_the_libraries_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
