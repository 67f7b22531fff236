/* SPDX-License-Identifier: Apache-2.0 */
/* Every rule of what may cross of a kubeconfig, by the files of tests/vectors/kubeconfig. */
#include "sandbox/kubeconfig/kubeconfig.h"

#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/base/err.h"
#include "broker/base/file.h"
#include "broker/base/json.h"
#include "broker/base/secret.h"
#include "tests/unit/fake_clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define VECTORS "tests/vectors/kubeconfig/"
#define TOKEN_REPAIR "kubectl create token NAME"

static struct fake_clock fake;

static struct kubeconfig_options plain_options(void)
{
	fake_clock_init(&fake);
	return (struct kubeconfig_options){
		.loopback_host = "host.docker.internal",
		.creds_dir = "/creds",
		.clock = &fake.clock,
	};
}

struct refusal {
	const char *file;
	unsigned line; /* 0: none is named */
	const char *what;
	const char *repair;
	bool allow_admin;
};

#define AT(file_, line_, what_, repair_) \
	{.file = (file_), .line = (line_), .what = (what_), .repair = (repair_)}
#define ADMIN_AT(file_, line_, what_, repair_) \
	{.file = (file_),                      \
	 .line = (line_),                      \
	 .what = (what_),                      \
	 .repair = (repair_),                  \
	 .allow_admin = true}

static const struct refusal refusals[] = {
	AT("no-current.yaml", 1, "no current context", "--context"),
	AT("empty-current.yaml", 1, "no current context", "--context"),
	AT("unknown-current.yaml", 17, "context \"elsewhere\" is not in the file", "--context"),
	AT("unknown-cluster.yaml", 15, "cluster \"c\" is not in the file", "--context"),
	AT("unknown-user.yaml", 16, "user \"u\" is not in the file", "--context"),
	AT("no-user.yaml", 13, "context \"ctx\" names no user", "--context"),
	AT("no-body.yaml", 9, "user \"u\" has no content", "complete it"),
	AT("duplicate-context.yaml", 14, "contexts has this name twice", "rename"),
	AT("duplicate-cluster.yaml", 6, "clusters has this name twice", "rename"),
	AT("duplicate-user.yaml", 10, "users has this name twice", "rename"),
	AT("nameless.yaml", 5, "clusters has an entry without a name", "give it one"),
	AT("users-are-a-map.yaml", 9, "users is no list", "- name:"),
	AT("other-kind.yaml", 3, "kind must be Config", "Config"),
	AT("other-version.yaml", 2, "apiVersion must be v1", "v1"),
	AT("list.yaml", 2, "no kubeconfig", "map"),
	AT("empty.yaml", 1, "empty", "kubeconfig"),
	AT("namespace-odd.yaml", 17, "context \"ctx\" has a namespace", "mend"),

	AT("anchor.yaml", 11, "an anchor", "write its value out"),
	AT("alias.yaml", 11, "alias", "write its value out"),
	AT("merge.yaml", 12, "merge key", "write its value out"),
	AT("tag.yaml", 11, "a tag", "delete it"),
	AT("tag-map.yaml", 10, "a tag", "delete it"),
	AT("documents.yaml", 18, "more than one document", "delete"),
	AT("duplicate-key.yaml", 12, "a key for the second time", "keep one"),
	AT("complex-key.yaml", 11, "a key that is no text", "write a name"),
	AT("deep.yaml", 18, "nested more than 16 deep", ""),
	AT("nul.yaml", 11, "a NUL", "delete it"),
	AT("syntax.yaml", 11, "not YAML: found character that cannot start any token", ""),

	AT("user-exec.yaml", 11, "user \"u\" runs a credential plugin", TOKEN_REPAIR),
	AT("user-auth-provider.yaml", 11, "user \"u\" runs a credential plugin", TOKEN_REPAIR),
	AT("user-username.yaml", 11, "user \"u\" logs in with a name and a password", TOKEN_REPAIR),
	AT("user-password.yaml", 11, "user \"u\" logs in with a name and a password", TOKEN_REPAIR),
	AT("user-as.yaml", 12, "user \"u\" impersonates", TOKEN_REPAIR),
	AT("user-as-uid.yaml", 12, "user \"u\" impersonates", TOKEN_REPAIR),
	AT("user-as-groups.yaml", 12, "user \"u\" impersonates", TOKEN_REPAIR),
	AT("user-as-user-extra.yaml", 12, "user \"u\" impersonates", TOKEN_REPAIR),
	AT("unknown-key-of-user.yaml", 12, "user \"u\" has a key that is none of", "delete it"),
	AT("user-no-token.yaml", 9, "user \"u\" has no token", TOKEN_REPAIR),
	AT("user-token-is-a-list.yaml", 11, "user \"u\" has a map or a list", "mend"),
	AT("user-token-with-a-line-end.yaml", 11, "user \"u\" has a token", "write it so"),
	AT("user-token-with-a-blank.yaml", 11, "user \"u\" has a token", "write it so"),
	AT("user-token-file-missing.yaml", 11, "a tokenFile that does not exist", "must be"),
	AT("user-token-file-directory.yaml", 11, "a tokenFile that is not a regular file",
	   "must be"),
	AT("user-token-file-wrong.yaml", 11, "a tokenFile that holds something else", "must be"),
	AT("user-certificate.yaml", 11, "a client certificate", "--allow-admin-kubeconfig"),
	AT("user-certificate-file.yaml", 11, "a client certificate", TOKEN_REPAIR),
	ADMIN_AT("user-certificate-without-key.yaml", 9, "without its key", "give both"),
	ADMIN_AT("user-certificate-is-a-key.yaml", 11,
		 "a client-certificate-data that holds something else", "alone"),
	ADMIN_AT("user-key-is-a-certificate.yaml", 12,
		 "a client-key-data that holds something else", "alone"),
	ADMIN_AT("user-exec.yaml", 11, "user \"u\" runs a credential plugin", TOKEN_REPAIR),

	AT("server-http.yaml", 7, "cluster \"c\" has a server of plain http", "https://"),
	AT("server-no-scheme.yaml", 7, "no https://HOST", "write it so"),
	AT("server-user.yaml", 7, "no https://HOST", "write it so"),
	AT("server-query.yaml", 7, "no https://HOST", "write it so"),
	AT("server-port.yaml", 7, "no https://HOST", "write it so"),
	AT("server-metadata-ip.yaml", 7, "link-local or metadata", "own address"),
	AT("server-metadata-ipv6.yaml", 7, "link-local or metadata", "own address"),
	AT("server-metadata-name.yaml", 7, "link-local or metadata", "own address"),
	AT("server-link-local.yaml", 7, "link-local or metadata", "own address"),
	AT("server-link-local-ipv6.yaml", 7, "link-local or metadata", "own address"),
	AT("server-link-local-mapped.yaml", 7, "link-local or metadata", "own address"),
	AT("server-odd-number.yaml", 7, "not written as four decimal numbers", "write it so"),
	AT("server-odd-short.yaml", 7, "not written as four decimal numbers", "write it so"),
	AT("cluster-no-server.yaml", 5, "cluster \"c\" has no server", "https://"),
	AT("cluster-proxy-url.yaml", 8, "cluster \"c\" is reached through a proxy", "delete"),
	AT("cluster-bad-server-name.yaml", 8, "a tls-server-name that is no host name", "mend"),
	AT("cluster-insecure-with-ca.yaml", 8, "beside a CA", "delete it"),
	AT("cluster-insecure-odd.yaml", 8, "neither true nor false", "write one"),
	AT("cluster-ca-missing.yaml", 8, "a certificate-authority file that does not exist", "PEM"),
	AT("cluster-ca-is-a-secret.yaml", 8, "holds something else than PEM certificates", "PEM"),
	AT("cluster-ca-is-a-key.yaml", 8, "holds something else than PEM certificates", "PEM"),
	AT("cluster-ca-and-more.yaml", 8, "holds something else than PEM certificates", "PEM"),
	AT("cluster-ca-and-a-key.yaml", 8, "holds something else than PEM certificates", "PEM"),
	AT("cluster-ca-no-certificate.yaml", 8, "holds something else than PEM certificates",
	   "PEM"),
	AT("cluster-ca-not-base64.yaml", 8, "a certificate-authority-data that is no base64",
	   "PEM"),
};

static void check_refusal(const struct refusal *refusal)
{
	struct kubeconfig_options options = plain_options();
	struct kubeconfig *out = NULL;
	struct err err = {0};
	AUTO_FREE char *path = xasprintf(VECTORS "%s", refusal->file);
	AUTO_FREE char *place = xasprintf("%s:%u: ", path, refusal->line);

	options.allow_admin = refusal->allow_admin;
	if (!kubeconfig_reduce(path, &options, &out, &err))
		fail_msg("accepted: %s", refusal->file);
	assert_null(out);
	assert_int_equal(err.code, ERR_INVALID);
	if (strncmp(err.text, place, strlen(place)) != 0 || !strstr(err.text, refusal->what))
		fail_msg("\"%s\" and \"%s\" are not in: %s", place, refusal->what, err.text);
	const char *const what = strstr(err.text, refusal->what);
	if (!strstr(what, refusal->repair))
		fail_msg("\"%s\" is not in: %s", refusal->repair, err.text);
	if (strstr(err.text, "CANARY") || strchr(err.text, '\n') || strstr(err.text, "169.254"))
		fail_msg("shows a value: %s", err.text);
}

static void what_may_not_cross_is_refused_with_its_line_and_repair(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(refusals); i++)
		check_refusal(&refusals[i]);
}

/* The result of a vector that is accepted. */
static struct kubeconfig *reduce(const char *file, const struct kubeconfig_options *options)
{
	struct kubeconfig *out = NULL;
	struct err err = {0};
	AUTO_FREE char *path = xasprintf(VECTORS "%s", file);

	if (kubeconfig_reduce(path, options, &out, &err))
		fail_msg("%s", err.text);
	for (size_t i = 0; i < out->warnings.count; i++)
		assert_null(strstr(out->warnings.items[i], "CANARY"));
	return out;
}

static void check_json(const struct kubeconfig *config, const char *expected)
{
	json_auto_t *got = json_loads(secret_bytes(config->json), 0, NULL);
	json_auto_t *want = json_loads(expected, 0, NULL);

	assert_non_null(want);
	if (!json_equal(got, want))
		fail_msg("not as expected: %s", secret_bytes(config->json));
}

#define JSON(cluster, user, context)                                                                \
	"{\"apiVersion\":\"v1\",\"kind\":\"Config\",\"current-context\":\"ctx\",\"clusters\":["     \
	"{\"name\":\"c\",\"cluster\":{" cluster "}}],\"users\":[{\"name\":\"u\",\"user\":{" user    \
	"}}],\"contexts\":[{\"name\":\"ctx\",\"context\":{\"cluster\":\"c\",\"user\":\"u\"" context \
	"}}]}"
#define SERVER "\"server\":\"https://api.example.com\""
#define SERVER_6443 "\"server\":\"https://api.example.com:6443\""
#define TOKEN "\"token\":\"CANARY-token\""

static void the_smallest_file_is_the_smallest_result(void **state)
{
	const struct kubeconfig_options options = plain_options();

	(void)state;
	AUTO_KUBECONFIG struct kubeconfig *json = reduce("json.yaml", &options);
	check_json(json, JSON(SERVER, TOKEN, ""));
	assert_int_equal(json->warnings.count, 0);
	assert_int_equal(json->token_file_count, 0);
	assert_string_equal(json->context, "ctx");
	AUTO_KUBECONFIG struct kubeconfig *empty = reduce("empty-keys.yaml", &options);
	check_json(empty, JSON(SERVER_6443, TOKEN, ""));
}

/* The base64 of a vector, by the test's own means: that of the file whole.yaml. */
static char *copy_ca_data(void)
{
	static const char key[] = "certificate-authority-data: ";
	AUTO_BUF struct buf text;
	struct err err;

	buf_init(&text, 65536);
	assert_int_equal(file_read(VECTORS "whole.yaml", &text, NULL, &err), 0);
	const char *const data = strstr(text.data, key) + strlen(key);
	return xstrndup(data, strcspn(data, "\n"));
}

static void only_the_context_with_its_cluster_and_user_crosses(void **state)
{
	const struct kubeconfig_options options = plain_options();

	(void)state;
	AUTO_KUBECONFIG struct kubeconfig *config = reduce("whole.yaml", &options);
	AUTO_FREE char *data = copy_ca_data();
	AUTO_FREE char *want = xasprintf(
		JSON("\"server\":\"https://api.example.com:6443/k8s/clusters/c-1\","
		     "\"tls-server-name\":\"kubernetes.default\",\"disable-compression\":true,"
		     "\"certificate-authority-data\":\"%s\"",
		     TOKEN, ",\"namespace\":\"team-a\""),
		data);
	check_json(config, want);
	assert_int_equal(config->warnings.count, 0);
}

static void a_named_context_is_the_one_that_is_checked(void **state)
{
	struct kubeconfig_options options = plain_options();
	struct kubeconfig *out = NULL;
	struct err err = {0};

	(void)state;
	options.context = "other";
	assert_int_equal(kubeconfig_reduce(VECTORS "whole.yaml", &options, &out, &err), -1);
	assert_non_null(strstr(err.text, "user \"other\" runs a credential plugin"));
	options.context = "ctx";
	AUTO_KUBECONFIG struct kubeconfig *config = reduce("no-current.yaml", &options);
	check_json(config, JSON(SERVER_6443, TOKEN, ""));
}

static void a_ca_file_is_embedded(void **state)
{
	const struct kubeconfig_options options = plain_options();

	(void)state;
	AUTO_KUBECONFIG struct kubeconfig *config = reduce("cluster-ca-file.yaml", &options);
	AUTO_FREE char *data = copy_ca_data();
	AUTO_FREE char *want =
		xasprintf(JSON(SERVER ",\"certificate-authority-data\":\"%s\"", TOKEN, ""), data);
	check_json(config, want);
}

static void a_server_on_loopback_is_reached_by_the_hosts_name(void **state)
{
	static const struct {
		const char *file;
		const char *server;
		const char *name;
	} cases[] = {
		{"loopback-localhost.yaml", ":8443/x", "localhost"},
		{"loopback-ipv4.yaml", ":6443", "localhost"},
		{"loopback-ipv4-other.yaml", "", "localhost"},
		{"loopback-ipv6.yaml", ":6443", "localhost"},
		{"loopback-wildcard.yaml", ":6443", "localhost"},
		{"loopback-wildcard-ipv6.yaml", ":6443", "localhost"},
		{"loopback-subdomain.yaml", ":6443", "kube.localhost"},
		{"loopback-declared.yaml", ":6443", "kind-control-plane"},
	};
	const struct kubeconfig_options options = plain_options();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_KUBECONFIG struct kubeconfig *config = reduce(cases[i].file, &options);
		AUTO_FREE char *want =
			xasprintf(JSON("\"server\":\"https://host.docker.internal%s\","
				       "\"tls-server-name\":\"%s\"",
				       TOKEN, ""),
				  cases[i].server, cases[i].name);
		check_json(config, want);
		assert_int_equal(config->warnings.count, 1);
		assert_non_null(strstr(config->warnings.items[0], "cluster \"c\" has a server on"));
	}
}

static void a_token_file_wins_and_is_named_as_the_sandbox_sees_it(void **state)
{
	const struct kubeconfig_options options = plain_options();

	(void)state;
	AUTO_KUBECONFIG struct kubeconfig *config = reduce("user-token-file.yaml", &options);
	check_json(config, JSON(SERVER_6443, "\"tokenFile\":\"/creds/token\"", ""));
	assert_int_equal(config->token_file_count, 1);
	assert_string_equal(config->token_files[0].source, VECTORS "token");
	assert_string_equal(config->token_files[0].name, "token");
}

static void a_client_certificate_crosses_where_it_is_allowed(void **state)
{
	static const char *const files[] = {"user-certificate.yaml", "user-certificate-file.yaml"};
	struct kubeconfig_options options = plain_options();

	(void)state;
	options.allow_admin = true;
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		AUTO_KUBECONFIG struct kubeconfig *config = reduce(files[i], &options);
		AUTO_FREE char *data = copy_ca_data();
		/* "-----BEGIN PRIVATE KEY-----" and so on, as base64(1) has it. */
		AUTO_FREE char *want = xasprintf(
			JSON(SERVER_6443,
			     "\"client-certificate-data\":\"%s\",\"client-key-data\":"
			     "\"LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tCk1BTUNBUUE9Ci0tLS0tRU5E"
			     "IFBSSVZBVEUgS0VZLS0tLS0K\"",
			     ""),
			data);
		check_json(config, want);
	}
}

static void what_is_only_odd_is_warned_about(void **state)
{
	static const struct {
		const char *file;
		const char *warning;
	} cases[] = {
		{"cluster-insecure.yaml", "cluster \"c\" is not verified"},
		{"cluster-unknown-key.yaml", "cluster \"c\" has a key that is not known"},
	};
	const struct kubeconfig_options options = plain_options();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_KUBECONFIG struct kubeconfig *config = reduce(cases[i].file, &options);
		assert_int_equal(config->warnings.count, 1);
		assert_non_null(strstr(config->warnings.items[0], cases[i].warning));
		assert_non_null(strstr(secret_bytes(config->json), SERVER));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_may_not_cross_is_refused_with_its_line_and_repair),
		cmocka_unit_test(the_smallest_file_is_the_smallest_result),
		cmocka_unit_test(only_the_context_with_its_cluster_and_user_crosses),
		cmocka_unit_test(a_named_context_is_the_one_that_is_checked),
		cmocka_unit_test(a_ca_file_is_embedded),
		cmocka_unit_test(a_server_on_loopback_is_reached_by_the_hosts_name),
		cmocka_unit_test(a_token_file_wins_and_is_named_as_the_sandbox_sees_it),
		cmocka_unit_test(a_client_certificate_crosses_where_it_is_allowed),
		cmocka_unit_test(what_is_only_odd_is_warned_about),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
