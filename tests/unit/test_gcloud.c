/* SPDX-License-Identifier: Apache-2.0 */
/* The login of the host's gcloud, played by scripts that print what gcloud 528 printed. */
#include "tests/unit/source_fixture.h"

#define EXPIRY "2099-01-01T00:00:00Z"
#define CONFIGURATION                                                              \
	"\"configuration\":{\"active_configuration\":\"default\",\"properties\":{" \
	"\"core\":{\"account\":\"me@example.org\",\"project\":\"p\"}}}"
#define ANSWER(token, expiry)                                                             \
	"{" CONFIGURATION ",\"credential\":{\"access_token\":\"" token "\",\"id_token\":" \
	"\"SECRET\",\"token_expiry\":\"" expiry "\"},\"sentinels\":{}}"

static const char *const environment[] = {
	"PATH=/usr/bin:/bin",
	"CLOUDSDK_AUTH_IMPERSONATE_SERVICE_ACCOUNT=someone@p.iam.gserviceaccount.com",
	"CLOUDSDK_CONFIG=/nonexistent",
	NULL,
};
static char program[96];

static int set_up(void **state)
{
	(void)state;
	source_set_up_loop();
	(void)snprintf(program, sizeof(program), "%s/gcloud", source.dir);
	source.options.type = "gcloud";
	source.options.file = NULL;
	source.options.gcloud = program;
	source.options.environment = environment;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	source_tear_down();
	return 0;
}

static void write_gcloud(const char *script)
{
	AUTO_FREE char *text = xasprintf("#!/bin/sh\n%s\n", script);
	AUTO_FREE char *expanded = source_expand(text);

	source_write("gcloud", 0700, expanded);
}

static void ask_gcloud(const char *script)
{
	write_gcloud(script);
	source_open();
	source_ask();
	source_turn();
}

static void gclouds_token_is_taken_with_its_expiry(void **state)
{
	struct credential_info info;

	(void)state;
	ask_gcloud("cat <<'END'\n" ANSWER("ya29.token", EXPIRY) "\nEND");
	source_has_token("ya29.token");
	credential_info(source.credential, &info);
	assert_string_equal(info.type, "gcloud");
	assert_string_equal(info.principal, "me@example.org");
	assert_string_equal(info.path, "");
	assert_true(info.token_expires_wall_ms > 0);
	/* djc/gcp_auth#57: not one gcloud a request. */
	write_gcloud("exit 1");
	source_ask();
	timer_queue_run(loop_timers(source.loop));
	source_has_token("ya29.token");
}

static void gcloud_is_asked_as_who_is_logged_in_without_prompts(void **state)
{
	(void)state;
	ask_gcloud("[ \"$*\" = 'config config-helper --format=json --min-expiry=10m' ] || exit 1\n"
		   "[ \"${CLOUDSDK_AUTH_IMPERSONATE_SERVICE_ACCOUNT-unset}\" = '' ] || exit 1\n"
		   "[ \"$CLOUDSDK_CORE_DISABLE_PROMPTS\" = 1 ] || exit 1\n"
		   "[ \"$CLOUDSDK_CONFIG\" = /nonexistent ] || exit 1\n"
		   "read line && exit 1\n"
		   "echo '" ANSWER("t", EXPIRY) "'");
	source_has_token("t");
}

static void check_failure(const char *script, enum failure_class class, const char *reason,
			  const char *detail)
{
	ask_gcloud(script);
	source_has_failed(class, reason, detail);
	assert_string_equal(failure_step_name(source.failure.step), "gcloud");
}

static void a_failure_of_gcloud_is_tried_again(void **state)
{
	(void)state;
	check_failure("echo 'ERROR: (gcloud.config.config-helper) There was a problem refreshing "
		      "your current auth tokens: SECRET Please run: $ gcloud auth login' >&2; "
		      "exit 1",
		      FAILURE_TRANSIENT, "gcloud_failed", "config-helper");
}

static void a_login_that_has_ended_says_so(void **state)
{
	(void)state;
	check_failure("echo \"ERROR: ('invalid_grant: Bad Request', SECRET)\" >&2; exit 1",
		      FAILURE_PERMANENT, "gcloud_login", "gcloud auth login");
	assert_int_equal(source.failure.public, FAILURE_LOGIN_EXPIRED);
}

/* cline/cline#4080 and others: the session length of the organisation. */
static void a_session_that_is_over_says_so(void **state)
{
	(void)state;
	check_failure("echo 'ERROR: Reauthentication failed. cannot prompt during non-interactive "
		      "execution.' >&2; exit 1",
		      FAILURE_PERMANENT, "gcloud_login", "gcloud auth login");
}

static void a_gcloud_without_a_login_says_so(void **state)
{
	(void)state;
	check_failure("echo 'ERROR: You do not currently have an active account selected.' >&2; "
		      "exit 1",
		      FAILURE_PERMANENT, "gcloud_login", "gcloud auth login");
}

static void a_gcloud_that_is_killed_is_tried_again(void **state)
{
	(void)state;
	check_failure("kill -SEGV $$", FAILURE_TRANSIENT, "gcloud_killed", "signal");
}

static void a_gcloud_that_prints_without_end_is_killed(void **state)
{
	(void)state;
	check_failure("cat /dev/zero", FAILURE_TRANSIENT, "gcloud_output", "more");
}

static void a_gcloud_that_is_gone_is_tried_again(void **state)
{
	(void)state;
	write_gcloud("exit 0");
	source_open();
	assert_int_equal(unlink(program), 0);
	source_ask();
	source_turn();
	source_has_failed(FAILURE_TRANSIENT, "gcloud_start", "gcloud under [source]");
}

static void an_expired_token_is_none(void **state)
{
	(void)state;
	check_failure("echo '" ANSWER("t", "2020-01-01T00:00:00Z") "'", FAILURE_TRANSIENT,
		      "gcloud_expired", "clock");
}

/* masumi-network/Citadel#203: an expiry that cannot be read is no expiry far away. */
static void what_is_no_answer_of_gcloud_is_a_failure(void **state)
{
	static const char *const answers[] = {
		"",
		"ya29.token",
		"{}",
		"{\"credential\":{\"access_token\":\"t\"}}",
		"{\"credential\":{\"access_token\":\"t\",\"token_expiry\":null}}",
		"{\"credential\":{\"access_token\":\"t\",\"token_expiry\":\"soon\"}}",
		"{\"credential\":{\"access_token\":\"\",\"token_expiry\":\"" EXPIRY "\"}}",
		"{\"credential\":{\"access_token\":null,\"token_expiry\":\"" EXPIRY "\"}}",
		"{\"credential\":{\"access_token\":\"a b\",\"token_expiry\":\"" EXPIRY "\"}}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		if (i) {
			source_tear_down();
			(void)set_up(state);
		}
		source_write("answer", 0600, answers[i]);
		check_failure("cat @/answer", FAILURE_TRANSIENT, "gcloud_answer", "by hand");
	}
}

static void a_source_that_goes_takes_its_gcloud_along(void **state)
{
	(void)state;
	write_gcloud("sleep 60");
	source_open();
	source_ask();
	credential_call_cancel(source.call);
	credential_free(source.credential);
	source.credential = NULL;
}

static void gcloud_is_found_in_path(void **state)
{
	(void)state;
	source.options.gcloud = NULL;
	source.options.env_path = "/nonexistent:/usr/bin/env";
	source_refused("there is no gcloud in the broker's PATH", "gcloud under [source]");
	source.options.env_path = NULL;
	source_refused("there is no gcloud in the broker's PATH", "gcloud under [source]");
	AUTO_FREE char *path = xasprintf("/nonexistent::relative:%s:", source.dir);
	source.options.env_path = path;
	source_write("gcloud", 0600, "");
	source_refused("there is no gcloud in the broker's PATH", "install it");
	write_gcloud("echo '" ANSWER("found", EXPIRY) "'");
	source_open();
	source_ask();
	source_turn();
	source_has_token("found");
}

static void a_gcloud_that_is_no_program_is_refused(void **state)
{
	(void)state;
	source_refused(program, "gcloud under [source]");
	source_write("gcloud", 0600, "");
	source_refused(program, "may run");
	source.options.gcloud = source.dir;
	source_refused(source.dir, "may run");
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(gclouds_token_is_taken_with_its_expiry),
		CASE(gcloud_is_asked_as_who_is_logged_in_without_prompts),
		CASE(a_failure_of_gcloud_is_tried_again),
		CASE(a_login_that_has_ended_says_so),
		CASE(a_session_that_is_over_says_so),
		CASE(a_gcloud_without_a_login_says_so),
		CASE(a_gcloud_that_is_killed_is_tried_again),
		CASE(a_gcloud_that_prints_without_end_is_killed),
		CASE(a_gcloud_that_is_gone_is_tried_again),
		CASE(an_expired_token_is_none),
		CASE(what_is_no_answer_of_gcloud_is_a_failure),
		CASE(a_source_that_goes_takes_its_gcloud_along),
		CASE(gcloud_is_found_in_path),
		CASE(a_gcloud_that_is_no_program_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
