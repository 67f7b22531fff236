/* SPDX-License-Identifier: Apache-2.0 */
/* The kubeconfig: whatever the file, one context that may cross or one line of error without a value. */
#include "broker/base/clock.h"
#include "broker/base/err.h"
#include "broker/base/json.h"
#include "broker/base/secret.h"
#include "sandbox/kubeconfig/kubeconfig.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int64_t stopped(const struct clock *clock)
{
	(void)clock;
	return 0;
}

static void check(bool holds)
{
	if (!holds)
		abort();
}

static const json_t *only(const json_t *config, const char *list, const char *body)
{
	const json_t *const entries = json_object_get(config, list);

	check(json_array_size(entries) == 1);
	const json_t *const found = json_object_get(json_array_get(entries, 0), body);
	check(json_is_object(found) && json_get_string(json_array_get(entries, 0), "name"));
	return found;
}

/* Every key is one of these. */
static void check_keys(const json_t *object, const char *const *known)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)object, key, value) {
		const char *const *at = known;
		while (*at && strcmp(*at, key) != 0)
			at++;
		check(*at != NULL);
	}
}

static void check_result(const struct kubeconfig *config)
{
	static const char *const of_cluster[] = {"server",
						 "tls-server-name",
						 "certificate-authority-data",
						 "insecure-skip-tls-verify",
						 "disable-compression",
						 NULL};
	static const char *const of_user[] = {"token", "tokenFile", NULL};
	static const char *const of_context[] = {"cluster", "user", "namespace", NULL};
	json_auto_t *json = json_read_object(secret_bytes(config->json), secret_len(config->json));

	check(json && !strcmp(json_get_string(json, "current-context"), config->context));
	const json_t *const cluster = only(json, "clusters", "cluster");
	const char *const server = json_get_string(cluster, "server");
	check(server && !strncasecmp(server, "https://", 8) && !strpbrk(server, "@?# \n"));
	check_keys(cluster, of_cluster);
	const json_t *const user = only(json, "users", "user");
	check_keys(user, of_user);
	check(json_object_size(user) == 1);
	check_keys(only(json, "contexts", "context"), of_context);
	check((json_get_string(user, "tokenFile") != NULL) == (config->token_file_count == 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct clock clock = {.boot_ms = stopped, .wall_ms = stopped};
	static const struct kubeconfig_options options = {
		.loopback_host = "host.docker.internal",
		.creds_dir = "/creds",
		.clock = &clock,
	};
	struct kubeconfig *out = NULL;
	struct err err = {0};

	if (kubeconfig_reduce_bytes("f", (const char *)data, size, &options, &out, &err)) {
		check(!out && err.code == ERR_INVALID && !strncmp(err.text, "f:", 2) &&
		      !strchr(err.text, '\n'));
		return 0;
	}
	AUTO_KUBECONFIG struct kubeconfig *config = out;
	check_result(config);
	for (size_t i = 0; i < config->warnings.count; i++)
		check(!strchr(config->warnings.items[i], '\n'));
	return 0;
}
