/* SPDX-License-Identifier: Apache-2.0 */
/* What every source has in common: its cache, its one refresh, its calls; and the kinds' own tokens. */
#include "broker/credential/credential.h"

#include "broker/base/err.h"
#include "broker/base/timer.h"
#include "tests/unit/fake_clock.h"
#include "tests/unit/fake_http.h"
#include "tests/unit/rsa_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define USER                                                                                 \
	"{\"type\":\"authorized_user\",\"account\":\"me@example.org\",\"client_id\":\"id\"," \
	"\"client_secret\":\"secret\",\"refresh_token\":\"first\"}"

static struct fake_clock fake;
static struct timer_queue timers;
static struct credential_options options;
static struct credential *credential;
static char path[64];
static EVP_PKEY *rsa;

/* One call and what became of it. */
struct asker {
	struct credential_call *call; /* NULL once it ended */
	size_t results;
	char *token; /* the caller's */
	struct failure failure;
	bool failed;
};

static int set_up(void **state)
{
	(void)state;
	fake_clock_init(&fake);
	fake_http_reset();
	timer_queue_init(&timers, &fake.clock);
	(void)snprintf(path, sizeof(path), "/tmp/postern-test-XXXXXX");
	AUTO_CLOSE int fd = mkostemp(path, O_CLOEXEC);
	assert_true(fd >= 0);
	options = (struct credential_options){
		.type = "file",
		.file = path,
		.universe_domain = "googleapis.com",
		.oauth2_endpoint = "https://oauth2.googleapis.com",
		.sts_endpoint = "https://sts.googleapis.com",
		.iamcredentials_endpoint = "https://iamcredentials.googleapis.com",
		.timers = &timers,
	};
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	credential_free(credential);
	credential = NULL;
	timer_queue_deinit(&timers);
	(void)unlink(path);
	assert_int_equal(fake_http.count, 0);
	return 0;
}

static void write_file(const char *text)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static struct credential *open_source(void)
{
	struct credential *opened = NULL;
	struct err err = {0};

	if (credential_open(&options, &opened, &err))
		fail_msg("%s", err.text);
	return opened;
}

static void open_user(void)
{
	write_file(USER);
	credential = open_source();
}

static void open_service_account(void)
{
	AUTO_FREE char *pem = pem_pkcs8(rsa);

	json_auto_t *root = json_pack("{s:s, s:s, s:s, s:s}", "type", "service_account",
				      "client_email", "sa@p.iam.gserviceaccount.com",
				      "private_key_id", "key-1", "private_key", pem);
	AUTO_FREE char *text = json_dumps(root, 0);
	write_file(text);
	credential = open_source();
}

static void result(void *ctx, struct secret *token, const struct failure *failure)
{
	struct asker *const asker = ctx;

	assert_true(!token != !failure);
	/* Never before credential_get_token() has returned the handle. */
	assert_non_null(asker->call);
	asker->call = NULL;
	asker->results++;
	free(asker->token);
	asker->token = token ? xstrdup(secret_bytes(token)) : NULL;
	asker->failed = failure != NULL;
	if (failure)
		asker->failure = *failure;
}

static void ask(struct asker *asker)
{
	asker->call = credential_get_token(credential, result, asker);
	assert_non_null(asker->call);
}

/* Asks, and lets what is due happen. */
static void ask_now(struct asker *asker)
{
	ask(asker);
	timer_queue_run(&timers);
}

static void answer(const char *token, int64_t expires_in)
{
	char body[128];

	(void)snprintf(body, sizeof(body), "{\"access_token\":\"%s\",\"expires_in\":%lld}", token,
		       (long long)expires_in);
	fake_http_answer(200, body, FAKE_WALL_S);
}

static void check_token(const struct asker *asker, size_t results, const char *token)
{
	assert_int_equal(asker->results, results);
	assert_false(asker->failed);
	assert_string_equal(asker->token, token);
}

static void the_first_call_refreshes_and_the_next_is_served_from_the_cache(void **state)
{
	struct asker a = {0};

	(void)state;
	open_user();
	ask_now(&a);
	assert_int_equal(a.results, 0);
	assert_string_equal(fake_http_request()->url, "https://oauth2.googleapis.com/token");
	assert_string_equal(fake_http_request()->body,
			    "grant_type=refresh_token&client_id=id&client_secret=secret"
			    "&refresh_token=first");
	answer("one", 3600);
	check_token(&a, 1, "one");
	ask(&a);
	/* Not before the call has returned, and then at once. */
	assert_int_equal(a.results, 1);
	timer_queue_run(&timers);
	check_token(&a, 2, "one");
	assert_int_equal(fake_http.started, 1);
	free(a.token);
}

static void nothing_is_asked_of_google_before_the_first_call(void **state)
{
	(void)state;
	open_user();
	timer_queue_run(&timers);
	assert_int_equal(fake_http.started, 0);
}

static void a_token_is_used_until_300_s_before_its_expiry(void **state)
{
	struct asker a = {0};

	(void)state;
	open_user();
	ask(&a);
	answer("one", 3600);
	fake_clock_advance_ms(&fake, 3300 * 1000 - 1);
	ask_now(&a);
	check_token(&a, 2, "one");
	fake_clock_advance_ms(&fake, 1);
	ask_now(&a);
	assert_int_equal(a.results, 2);
	answer("two", 3600);
	check_token(&a, 3, "two");
	free(a.token);
}

static void a_token_of_short_life_is_used_for_two_thirds_of_it(void **state)
{
	struct asker a = {0};

	(void)state;
	open_user();
	ask(&a);
	answer("one", 300);
	fake_clock_advance_ms(&fake, 200 * 1000 - 1);
	ask_now(&a);
	check_token(&a, 2, "one");
	fake_clock_advance_ms(&fake, 1);
	ask_now(&a);
	answer("two", 300);
	check_token(&a, 3, "two");
	free(a.token);
}

static void the_life_counts_from_when_the_request_was_sent(void **state)
{
	struct asker a = {0};

	(void)state;
	open_user();
	ask(&a);
	fake_clock_advance_ms(&fake, 20 * 1000);
	answer("one", 3600);
	fake_clock_advance_ms(&fake, 3280 * 1000 - 1);
	ask_now(&a);
	check_token(&a, 2, "one");
	fake_clock_advance_ms(&fake, 1);
	ask_now(&a);
	answer("two", 3600);
	check_token(&a, 3, "two");
	free(a.token);
}

static void a_token_without_a_life_is_delivered_but_not_kept(void **state)
{
	struct asker a = {0};
	struct asker b = {0};

	(void)state;
	open_user();
	ask(&a);
	ask(&b);
	fake_http_answer(200, "{\"access_token\":\"one\"}", FAKE_WALL_S);
	check_token(&a, 1, "one");
	check_token(&b, 1, "one");
	ask_now(&a);
	answer("two", 3600);
	check_token(&a, 2, "two");
	free(a.token);
	free(b.token);
}

/* In a suspend the boot clock moves on; after it, the wall clock may be wrong for a while. */
static void after_a_suspend_the_token_is_not_used_any_more(void **state)
{
	struct asker a = {0};

	(void)state;
	open_user();
	ask(&a);
	answer("one", 3600);
	fake.boot_ms += 3300 * 1000;
	ask_now(&a);
	assert_int_equal(a.results, 1);
	answer("two", 3600);
	check_token(&a, 2, "two");
	free(a.token);
}

static void a_wall_clock_set_forward_costs_a_refresh_and_set_back_gains_nothing(void **state)
{
	struct asker a = {0};

	(void)state;
	open_user();
	ask(&a);
	answer("one", 3600);
	fake.wall_ms += 3600 * 1000;
	ask_now(&a);
	answer("two", 3600);
	check_token(&a, 2, "two");
	fake.wall_ms -= 2 * 3600 * 1000;
	ask_now(&a);
	check_token(&a, 3, "two");
	fake_clock_advance_ms(&fake, 3300 * 1000);
	ask_now(&a);
	answer("three", 3600);
	check_token(&a, 4, "three");
	free(a.token);
}

static void a_thousand_callers_share_one_refresh(void **state)
{
	static struct asker askers[1000];

	(void)state;
	memset(askers, 0, sizeof(askers));
	open_user();
	for (size_t i = 0; i < ARRAY_LEN(askers); i++)
		ask(&askers[i]);
	timer_queue_run(&timers);
	assert_int_equal(fake_http.started, 1);
	answer("one", 3600);
	for (size_t i = 0; i < ARRAY_LEN(askers); i++) {
		check_token(&askers[i], 1, "one");
		free(askers[i].token);
	}
	assert_int_equal(fake_http.started, 1);
}

static void a_failure_reaches_every_caller_and_is_not_kept(void **state)
{
	struct asker a = {0};
	struct asker b = {0};

	(void)state;
	open_user();
	ask(&a);
	ask(&b);
	fake_http_answer(400, "{\"error\":\"invalid_grant\"}", FAKE_WALL_S);
	assert_int_equal(a.results, 1);
	assert_true(a.failed);
	assert_int_equal(a.failure.public, FAILURE_LOGIN_EXPIRED);
	assert_int_equal(b.results, 1);
	assert_true(b.failed);
	ask_now(&a);
	answer("one", 3600);
	check_token(&a, 2, "one");
	free(a.token);
}

static void a_cancelled_caller_hears_nothing_and_the_refresh_goes_on(void **state)
{
	struct asker a = {0};
	struct asker b = {0};

	(void)state;
	open_user();
	ask(&a);
	ask(&b);
	credential_call_cancel(a.call);
	answer("one", 3600);
	assert_int_equal(a.results, 0);
	check_token(&b, 1, "one");
	free(b.token);
}

static void a_refresh_that_nobody_waits_for_still_fills_the_cache(void **state)
{
	struct asker a = {0};

	(void)state;
	open_user();
	ask(&a);
	credential_call_cancel(a.call);
	credential_call_cancel(NULL);
	assert_int_equal(fake_http.cancelled, 0);
	answer("one", 3600);
	assert_int_equal(a.results, 0);
	ask_now(&a);
	check_token(&a, 1, "one");
	assert_int_equal(fake_http.started, 1);
	free(a.token);
}

static void a_caller_that_comes_after_the_others_left_joins_the_refresh(void **state)
{
	struct asker a = {0};
	struct asker b = {0};

	(void)state;
	open_user();
	ask(&a);
	credential_call_cancel(a.call);
	ask_now(&b);
	assert_int_equal(fake_http.started, 1);
	answer("one", 3600);
	check_token(&b, 1, "one");
	free(b.token);
}

static void a_call_served_from_the_cache_can_be_cancelled_too(void **state)
{
	struct asker a = {0};

	(void)state;
	open_user();
	ask(&a);
	answer("one", 3600);
	ask(&a);
	credential_call_cancel(a.call);
	timer_queue_run(&timers);
	check_token(&a, 1, "one");
	free(a.token);
}

static void a_credential_freed_in_a_refresh_ends_it(void **state)
{
	struct asker a = {0};

	(void)state;
	open_user();
	ask(&a);
	credential_call_cancel(a.call);
	credential_free(credential);
	credential = NULL;
	assert_int_equal(fake_http.cancelled, 1);
}

static struct {
	struct asker again;
	struct asker other;
} in_callback;

static void ask_again_and_cancel_the_other(void *ctx, struct secret *token,
					   const struct failure *failure)
{
	(void)ctx;
	assert_non_null(token);
	assert_null(failure);
	credential_call_cancel(in_callback.other.call);
	credential_drop_token(credential);
	ask(&in_callback.again);
}

static void a_callback_may_ask_again_drop_the_token_and_cancel_another(void **state)
{
	(void)state;
	memset(&in_callback, 0, sizeof(in_callback));
	open_user();
	(void)!credential_get_token(credential, ask_again_and_cancel_the_other, NULL);
	ask(&in_callback.other);
	answer("one", 3600);
	assert_int_equal(in_callback.other.results, 0);
	assert_int_equal(in_callback.again.results, 0);
	assert_int_equal(fake_http.started, 2);
	answer("two", 3600);
	check_token(&in_callback.again, 1, "two");
	free(in_callback.again.token);
}

static void free_the_credential(void *ctx, struct secret *token, const struct failure *failure)
{
	(void)ctx;
	(void)failure;
	credential_free(credential);
	credential = NULL;
	assert_int_equal(secret_len(token), strlen("one"));
}

static void the_last_callback_may_free_the_credential(void **state)
{
	struct asker a = {0};

	(void)state;
	open_user();
	(void)!credential_get_token(credential, free_the_credential, NULL);
	answer("one", 3600);
	assert_null(credential);
	open_user();
	ask(&a);
	answer("one", 3600);
	(void)!credential_get_token(credential, free_the_credential, NULL);
	timer_queue_run(&timers);
	assert_null(credential);
	free(a.token);
}

static void a_dropped_token_is_not_used_again(void **state)
{
	struct asker a = {0};

	(void)state;
	open_user();
	ask(&a);
	answer("one", 3600);
	credential_drop_token(credential);
	ask_now(&a);
	assert_int_equal(fake_http.started, 2);
	answer("two", 3600);
	check_token(&a, 2, "two");
	free(a.token);
}

static void a_token_dropped_on_its_way_to_a_caller_is_not_delivered(void **state)
{
	struct asker a = {0};

	(void)state;
	open_user();
	ask(&a);
	answer("one", 3600);
	ask(&a);
	credential_drop_token(credential);
	timer_queue_run(&timers);
	assert_int_equal(a.results, 1);
	answer("two", 3600);
	check_token(&a, 2, "two");
	free(a.token);
}

static void a_rotated_refresh_token_is_used_and_the_file_left_alone(void **state)
{
	struct asker a = {0};
	char text[sizeof(USER) + 1] = "";

	(void)state;
	open_user();
	ask(&a);
	fake_http_answer(200,
			 "{\"access_token\":\"one\",\"expires_in\":3600,"
			 "\"refresh_token\":\"second\"}",
			 FAKE_WALL_S);
	credential_drop_token(credential);
	ask_now(&a);
	assert_string_equal(fake_http_request()->body,
			    "grant_type=refresh_token&client_id=id&client_secret=secret"
			    "&refresh_token=second");
	answer("two", 3600);
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(fd, text, sizeof(text)), strlen(USER));
	assert_string_equal(text, USER);
	free(a.token);
}

static void the_status_shows_a_token_while_it_lives(void **state)
{
	struct credential_info info;
	struct asker a = {0};

	(void)state;
	open_user();
	credential_info(credential, &info);
	assert_string_equal(info.type, "authorized_user");
	assert_string_equal(info.principal, "me@example.org");
	assert_string_equal(info.path, path);
	assert_int_equal(info.token_expires_wall_ms, 0);
	ask(&a);
	answer("one", 3600);
	credential_info(credential, &info);
	assert_int_equal(info.token_expires_wall_ms, (FAKE_WALL_S + 3600) * 1000);
	fake_clock_advance_ms(&fake, 3600 * 1000);
	credential_info(credential, &info);
	assert_int_equal(info.token_expires_wall_ms, 0);
	free(a.token);
}

static void two_credentials_of_the_same_content_are_equal(void **state)
{
	(void)state;
	open_user();
	struct credential *const same = open_source();
	assert_true(credential_equal(credential, same));
	credential_free(same);
	write_file(
		"{\"type\":\"authorized_user\",\"client_id\":\"id\",\"client_secret\":\"secret\","
		"\"refresh_token\":\"other\"}");
	struct credential *const other = open_source();
	assert_false(credential_equal(credential, other));
	credential_free(other);
	options.type = "offline";
	struct credential *const offline = open_source();
	struct credential *const offline_too = open_source();
	assert_false(credential_equal(credential, offline));
	assert_false(credential_equal(offline, credential));
	assert_true(credential_equal(offline, offline_too));
	credential_free(offline);
	credential_free(offline_too);
}

static void check_assertion(const char *token, json_int_t iat_s)
{
	struct jwt_parts parts;

	jwt_verify(token, rsa, &parts);
	assert_string_equal(parts.header, "{\"alg\":\"RS256\",\"typ\":\"JWT\",\"kid\":\"key-1\"}");
	json_auto_t *expected = json_pack("{s:s, s:s, s:s, s:I, s:I}", "iss",
					  "sa@p.iam.gserviceaccount.com", "sub",
					  "sa@p.iam.gserviceaccount.com", "aud",
					  "https://iamcredentials.googleapis.com/", "iat", iat_s,
					  "exp", iat_s + 3600);
	assert_true(json_equal(parts.claims, expected));
	jwt_parts_deinit(&parts);
}

static void a_service_account_signs_an_assertion_that_is_back_dated_30_s(void **state)
{
	struct asker a = {0};

	(void)state;
	open_service_account();
	ask(&a);
	assert_int_equal(a.results, 0);
	timer_queue_run(&timers);
	assert_int_equal(a.results, 1);
	assert_false(a.failed);
	check_assertion(a.token, FAKE_WALL_S - 30);
	assert_int_equal(fake_http.started, 0);
	free(a.token);
}

static void each_call_gets_a_new_assertion(void **state)
{
	struct asker a = {0};

	(void)state;
	open_service_account();
	ask_now(&a);
	fake_clock_advance_ms(&fake, 1000);
	ask_now(&a);
	assert_int_equal(a.results, 2);
	check_assertion(a.token, FAKE_WALL_S + 1 - 30);
	free(a.token);
}

static void an_assertion_is_of_googles_time_not_of_ours(void **state)
{
	struct asker a = {0};

	(void)state;
	open_service_account();
	/* Our clock is 400 s ahead. */
	fake.wall_ms += 400 * 1000;
	credential_set_skew(credential, 400);
	ask_now(&a);
	check_assertion(a.token, FAKE_WALL_S - 30);
	/* And now behind. */
	fake.wall_ms -= 800 * 1000;
	credential_set_skew(credential, -400);
	ask_now(&a);
	check_assertion(a.token, FAKE_WALL_S - 30);
	free(a.token);
}

static void the_audience_is_of_the_configured_universe(void **state)
{
	struct asker a = {0};
	AUTO_FREE char *pem = pem_pkcs8(rsa);
	struct jwt_parts parts;

	(void)state;
	json_auto_t *root = json_pack("{s:s, s:s, s:s, s:s}", "type", "service_account",
				      "client_email", "sa@p.example", "universe_domain",
				      "s3nsapis.fr", "private_key", pem);
	AUTO_FREE char *text = json_dumps(root, 0);
	write_file(text);
	options.universe_domain = "s3nsapis.fr";
	credential = open_source();
	ask_now(&a);
	jwt_verify(a.token, rsa, &parts);
	assert_string_equal(parts.header, "{\"alg\":\"RS256\",\"typ\":\"JWT\"}");
	assert_string_equal(json_string_value(json_object_get(parts.claims, "aud")),
			    "https://iamcredentials.s3nsapis.fr/");
	jwt_parts_deinit(&parts);
	free(a.token);
}

static void an_assertion_for_iam_names_iam(void **state)
{
	struct asker a = {0};
	struct jwt_parts parts;

	(void)state;
	open_service_account();
	a.call = credential_get_iam_token(credential, result, &a);
	timer_queue_run(&timers);
	assert_int_equal(a.results, 1);
	jwt_verify(a.token, rsa, &parts);
	assert_string_equal(json_string_value(json_object_get(parts.claims, "aud")),
			    "https://iam.googleapis.com/");
	jwt_parts_deinit(&parts);
	free(a.token);
}

static void an_assertion_can_be_cancelled(void **state)
{
	struct asker a = {0};

	(void)state;
	open_service_account();
	ask(&a);
	credential_call_cancel(a.call);
	timer_queue_run(&timers);
	assert_int_equal(a.results, 0);
}

static void an_offline_token_can_be_told_from_a_real_one(void **state)
{
	struct asker a = {0};
	struct asker b = {0};
	struct credential_info info;

	(void)state;
	options.type = "offline";
	credential = open_source();
	assert_true(credential_is_offline(credential));
	credential_info(credential, &info);
	assert_string_equal(info.type, "offline");
	assert_string_equal(info.principal, "");
	assert_string_equal(info.path, "");
	ask(&a);
	ask(&b);
	assert_int_equal(a.results, 0);
	timer_queue_run(&timers);
	assert_int_equal(strlen(a.token), strlen("offline.") + 48);
	assert_memory_equal(a.token, "offline.", strlen("offline."));
	assert_int_equal(strspn(a.token + strlen("offline."), "0123456789abcdef"), 48);
	assert_string_not_equal(a.token, b.token);
	assert_int_equal(fake_http.started, 0);
	free(a.token);
	free(b.token);
}

static void a_real_source_is_not_offline(void **state)
{
	(void)state;
	open_user();
	assert_false(credential_is_offline(credential));
}

static int make_key(void **state)
{
	(void)state;
	rsa = EVP_RSA_gen(2048);
	return rsa ? 0 : -1;
}

static int free_key(void **state)
{
	(void)state;
	EVP_PKEY_free(rsa);
	return 0;
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		CASE(the_first_call_refreshes_and_the_next_is_served_from_the_cache),
		CASE(nothing_is_asked_of_google_before_the_first_call),
		CASE(a_token_is_used_until_300_s_before_its_expiry),
		CASE(a_token_of_short_life_is_used_for_two_thirds_of_it),
		CASE(the_life_counts_from_when_the_request_was_sent),
		CASE(a_token_without_a_life_is_delivered_but_not_kept),
		CASE(after_a_suspend_the_token_is_not_used_any_more),
		CASE(a_wall_clock_set_forward_costs_a_refresh_and_set_back_gains_nothing),
		CASE(a_thousand_callers_share_one_refresh),
		CASE(a_failure_reaches_every_caller_and_is_not_kept),
		CASE(a_cancelled_caller_hears_nothing_and_the_refresh_goes_on),
		CASE(a_refresh_that_nobody_waits_for_still_fills_the_cache),
		CASE(a_caller_that_comes_after_the_others_left_joins_the_refresh),
		CASE(a_call_served_from_the_cache_can_be_cancelled_too),
		CASE(a_credential_freed_in_a_refresh_ends_it),
		CASE(a_callback_may_ask_again_drop_the_token_and_cancel_another),
		CASE(the_last_callback_may_free_the_credential),
		CASE(a_dropped_token_is_not_used_again),
		CASE(a_token_dropped_on_its_way_to_a_caller_is_not_delivered),
		CASE(a_rotated_refresh_token_is_used_and_the_file_left_alone),
		CASE(the_status_shows_a_token_while_it_lives),
		CASE(two_credentials_of_the_same_content_are_equal),
		CASE(a_service_account_signs_an_assertion_that_is_back_dated_30_s),
		CASE(each_call_gets_a_new_assertion),
		CASE(an_assertion_is_of_googles_time_not_of_ours),
		CASE(the_audience_is_of_the_configured_universe),
		CASE(an_assertion_for_iam_names_iam),
		CASE(an_assertion_can_be_cancelled),
		CASE(an_offline_token_can_be_told_from_a_real_one),
		CASE(a_real_source_is_not_offline),
	};

	return cmocka_run_group_tests(tests, make_key, free_key);
}
