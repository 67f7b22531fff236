/* SPDX-License-Identifier: Apache-2.0 */
/* Kubeconfigs that must be made: by size, as links, with tokens that end. */
#include "sandbox/kubeconfig/kubeconfig.h"

#include "broker/base/alloc.h"
#include "broker/base/base64url.h"
#include "broker/base/buf.h"
#include "broker/base/err.h"
#include "broker/base/secret.h"
#include "sandbox/kubeconfig/kubeconfig_yaml.h"
#include "tests/unit/fake_clock.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define MINUTE_S INT64_C(60)
/* Maps, lists and texts of HEAD with a token and a list behind it. */
#define VALUES_OF_HEAD 19
#define HEAD                                                                                   \
	"clusters:\n- {name: c, cluster: {server: \"https://api.example.com\"}}\n"             \
	"contexts:\n- {name: x, context: {cluster: c, user: u}}\ncurrent-context: x\nusers:\n" \
	"- name: u\n  user:\n"

static struct fake_clock fake;
static char dir[64];
static char path[128];
static char token_path[128];

static int set_up(void **state)
{
	(void)state;
	fake_clock_init(&fake);
	(void)snprintf(dir, sizeof(dir), "/tmp/postern-test-XXXXXX");
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/config", dir);
	(void)snprintf(token_path, sizeof(token_path), "%s/the-token", dir);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	(void)unlink(path);
	(void)unlink(token_path);
	assert_int_equal(rmdir(dir), 0);
	return 0;
}

static void write_file(const char *name, const char *text, size_t len)
{
	(void)unlink(name);
	AUTO_CLOSE int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, text, len) != (ssize_t)len)
		fail_msg("%s cannot be written", name);
}

static struct kubeconfig *reduce(int64_t timeout_s, struct err *err)
{
	const struct kubeconfig_options options = {
		.loopback_host = "host.docker.internal",
		.creds_dir = "/creds",
		.timeout_s = timeout_s,
		.clock = &fake.clock,
	};
	struct kubeconfig *out = NULL;

	*err = (struct err){0};
	if (kubeconfig_reduce(path, &options, &out, err))
		assert_null(out);
	return out;
}

static void check_refused(const char *what)
{
	struct err err;

	if (reduce(0, &err))
		fail_msg("accepted, not: %s", what);
	assert_int_equal(err.code, ERR_INVALID);
	assert_int_equal(strncmp(err.text, path, strlen(path)), 0);
	if (!strstr(err.text, what) || strstr(err.text, "the-token"))
		fail_msg("\"%s\" expected in: %s", what, err.text);
}

/* A JWT without a signature that means anything. */
static char *copy_jwt(const char *claims)
{
	AUTO_BUF struct buf text;

	buf_init(&text, 4096);
	buf_add(&text, "eyJhbGciOiJSUzI1NiJ9.");
	base64url_encode(&text, claims, strlen(claims));
	buf_add(&text, ".c2ln");
	return xstrdup(text.data);
}

static void write_token(const char *token)
{
	AUTO_FREE char *text = xasprintf(HEAD "    token: %s\n", token);

	write_file(path, text, strlen(text));
}

static void check_warning(const char *claims, int64_t timeout_s, const char *warning)
{
	struct err err;
	AUTO_FREE char *token = copy_jwt(claims);

	write_token(token);
	AUTO_KUBECONFIG struct kubeconfig *config = reduce(timeout_s, &err);
	if (!config)
		fail_msg("%s", err.text);
	assert_int_equal(config->warnings.count, warning ? 1 : 0);
	if (warning && !strstr(config->warnings.items[0], warning))
		fail_msg("\"%s\" is not in: %s", warning, config->warnings.items[0]);
	assert_non_null(strstr(secret_bytes(config->json), token));
}

/* RFC 7519 section 4.1.4: exp is a number of seconds, perhaps with a fraction. */
static void a_token_that_ends_before_the_run_is_warned_about_with_its_time(void **state)
{
	(void)state;
	/* 10:46:00 and one second less, of a run of 45 minutes that starts at 10:00:00. */
	check_warning("{\"exp\":1795949160}", 45 * MINUTE_S, NULL);
	check_warning("{\"exp\":1795949159}", 45 * MINUTE_S,
		      "user \"u\" has a token that ends at 2026-11-29T10:45:59Z");
	check_warning("{\"exp\":1795949159.5}", 45 * MINUTE_S, "--duration 2760s");
	check_warning("{\"exp\":1795942800}", 0, "ended at 2026-11-29T09:00:00Z");
	check_warning("{\"exp\":1795946401}", 0, NULL);
}

static void what_has_no_end_is_not_warned_about(void **state)
{
	static const char *const claims[] = {
		"{}", "[]", "{\"exp\":\"1\"}", "{\"exp\":-1}", "{\"exp\":1e300}", "{\"exp\":null}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(claims); i++)
		check_warning(claims[i], 45 * MINUTE_S, NULL);
}

static void a_kubeconfig_that_is_a_link_or_no_file_is_refused(void **state)
{
	(void)state;
	assert_int_equal(symlink("/etc/hostname", path), 0);
	check_refused("is a symlink");
	assert_int_equal(unlink(path), 0);
	check_refused("does not exist");
	assert_int_equal(mkfifo(path, 0600), 0);
	check_refused("is not a regular file");
}

static void a_file_of_1_mib_is_read_and_one_byte_more_is_not(void **state)
{
	static char text[YAML_MAX_BYTES + 1];
	struct err err;

	(void)state;
	const int len = snprintf(text, sizeof(text), "%s", HEAD "    token: t\n#");
	for (size_t i = (size_t)len; i < sizeof(text); i++)
		text[i] = i % 80 ? 'x' : '#';
	write_file(path, text, YAML_MAX_BYTES);
	AUTO_KUBECONFIG struct kubeconfig *config = reduce(0, &err);
	if (!config)
		fail_msg("%s", err.text);
	write_file(path, text, YAML_MAX_BYTES + 1);
	check_refused("is too large");
}

static void a_token_file_is_small_regular_and_no_link(void **state)
{
	static char large[65537];
	static const char text[] = HEAD "    tokenFile: the-token\n";
	struct err err;

	(void)state;
	write_file(path, text, strlen(text));
	check_refused("does not exist");
	memset(large, 'x', sizeof(large));
	write_file(token_path, large, sizeof(large));
	check_refused("is too large");
	write_file(token_path, "a\0b", 3);
	check_refused("holds something else than one token");
	write_file(token_path, "", 0);
	check_refused("holds something else than one token");
	assert_int_equal(unlink(token_path), 0);
	assert_int_equal(symlink(path, token_path), 0);
	check_refused("is a symlink");
	assert_int_equal(unlink(token_path), 0);
	assert_int_equal(mkfifo(token_path, 0600), 0);
	check_refused("is not a regular file");
	/* client-go trims what it reads. */
	write_file(token_path, " \tone\r\n\n", 8);
	AUTO_KUBECONFIG struct kubeconfig *config = reduce(0, &err);
	if (!config)
		fail_msg("%s", err.text);
	assert_string_equal(config->token_files[0].source, token_path);
}

/* `most` numbered lines behind `start` are read, one more is refused. */
static void check_bound(const char *start, const char *before, const char *after, unsigned most,
			const char *what)
{
	AUTO_BUF struct buf text;
	struct err err;

	buf_init(&text, YAML_MAX_BYTES);
	buf_add(&text, HEAD "    token: t\n");
	buf_add(&text, start);
	for (unsigned i = 0; i < most; i++)
		buf_addf(&text, "%s%u%s\n", before, i, after);
	write_file(path, text.data, text.len);
	AUTO_KUBECONFIG struct kubeconfig *config = reduce(0, &err);
	if (!config)
		fail_msg("%s", err.text);
	buf_addf(&text, "%s%u%s\n", before, most, after);
	write_file(path, text.data, text.len);
	check_refused(what);
}

static void maps_keys_and_values_have_bounds(void **state)
{
	(void)state;
	check_bound("extensions:\n  x:\n", "    k", ": v", 256, "more than 256 keys");
	check_bound("extensions:\n", "- ", "", 65536 - VALUES_OF_HEAD, "more than 65536 values");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_token_that_ends_before_the_run_is_warned_about_with_its_time, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(what_has_no_end_is_not_warned_about, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_kubeconfig_that_is_a_link_or_no_file_is_refused,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_file_of_1_mib_is_read_and_one_byte_more_is_not,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_token_file_is_small_regular_and_no_link, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(maps_keys_and_values_have_bounds, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
