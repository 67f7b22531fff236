/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/kubeconfig/kubeconfig.h"

#include "broker/base/alloc.h"
#include "broker/base/err.h"
#include "broker/base/log.h"
#include "broker/base/secret.h"
#include "sandbox/kubeconfig/kubeconfig_impl.h"
#include "sandbox/kubeconfig/kubeconfig_yaml.h"
#include "sandbox/kubeconfig/plain_file.h"

#include <string.h>

/* Base64 of three PEM texts and of the token, and room for names. */
#define JSON_MAX_BYTES (8 * KUBECONFIG_MAX_PEM_BYTES)

const char *kubeconfig_kind_name(enum kubeconfig_kind kind)
{
	static const char *const names[KUBECONFIG_KINDS] = {
		[KUBECONFIG_CONTEXT] = "context",
		[KUBECONFIG_CLUSTER] = "cluster",
		[KUBECONFIG_USER] = "user",
	};

	return names[kind];
}

int kubeconfig_refuse(const struct kubeconfig_reading *reading, enum kubeconfig_kind kind,
		      unsigned line, const char *message)
{
	struct quoted q;

	return err_set(reading->err, ERR_INVALID, "%s:%u: %s %s %s", reading->path, line,
		       kubeconfig_kind_name(kind), quote_str(&q, reading->entries[kind].name),
		       message);
}

void kubeconfig_warn(const struct kubeconfig_reading *reading, enum kubeconfig_kind kind,
		     const char *message)
{
	struct quoted q;
	AUTO_FREE char *line = xasprintf("%s: %s %s %s", reading->path, kubeconfig_kind_name(kind),
					 quote_str(&q, reading->entries[kind].name), message);

	strv_add(reading->warnings, line, strlen(line));
}

char *kubeconfig_resolve(const struct kubeconfig_reading *reading, const char *path)
{
	const char *const slash = strrchr(reading->path, '/');

	if (path[0] == '/' || !slash)
		return xstrdup(path);
	return xasprintf("%.*s/%s", (int)(slash - reading->path), reading->path, path);
}

static void reading_deinit(struct kubeconfig_reading *reading)
{
	free(reading->server);
	free(reading->tls_server_name);
	free(reading->token_file);
	buf_deinit(&reading->ca);
	buf_deinit(&reading->certificate);
	buf_deinit(&reading->key);
}

static struct kubeconfig *result_of(struct kubeconfig_reading *reading)
{
	struct kubeconfig *const result = xcalloc(1, sizeof(*result));
	AUTO_BUF struct buf json;

	buf_init_sensitive(&json, JSON_MAX_BYTES);
	kubeconfig_write(reading, &json);
	result->json = secret_take_buf(&json);
	result->context = xstrdup(reading->entries[KUBECONFIG_CONTEXT].name);
	if (reading->token_file) {
		result->token_files = xcalloc(1, sizeof(*result->token_files));
		result->token_files[0].source = TAKE(reading->token_file);
		result->token_files[0].name = xstrdup(KUBECONFIG_TOKEN_NAME);
		result->token_file_count = 1;
	}
	result->warnings = *reading->warnings;
	*reading->warnings = (struct strv){0};
	return result;
}

int kubeconfig_reduce_bytes(const char *path, const char *bytes, size_t len,
			    const struct kubeconfig_options *options, struct kubeconfig **out,
			    struct err *err)
{
	AUTO_YAML struct yaml_value root = {0};
	AUTO_STRV struct strv warnings = {0};

	if (yaml_read(&root, path, bytes, len, err))
		return -1;
	CLEANUP(reading_deinit)
	struct kubeconfig_reading reading = {
		.path = path,
		.options = options,
		.root = &root,
		.warnings = &warnings,
		.err = err,
	};
	buf_init(&reading.ca, KUBECONFIG_MAX_PEM_BYTES);
	buf_init_sensitive(&reading.certificate, KUBECONFIG_MAX_PEM_BYTES);
	buf_init_sensitive(&reading.key, KUBECONFIG_MAX_PEM_BYTES);
	if (kubeconfig_select(&reading) || kubeconfig_check(&reading) ||
	    kubeconfig_read_cluster(&reading) || kubeconfig_read_user(&reading))
		return -1;
	*out = result_of(&reading);
	return 0;
}

int kubeconfig_reduce(const char *path, const struct kubeconfig_options *options,
		      struct kubeconfig **out, struct err *err)
{
	AUTO_BUF struct buf bytes;

	buf_init_sensitive(&bytes, YAML_MAX_BYTES);
	const char *const why = plain_file_read(path, false, &bytes);
	if (why)
		return err_set(err, ERR_INVALID,
			       "%s: %s; name a regular, readable file of at most 1 MiB", path, why);
	return kubeconfig_reduce_bytes(path, bytes.data, bytes.len, options, out, err);
}

void kubeconfig_free(struct kubeconfig *kubeconfig)
{
	if (!kubeconfig)
		return;
	secret_unref(kubeconfig->json);
	for (size_t i = 0; i < kubeconfig->token_file_count; i++) {
		free(kubeconfig->token_files[i].source);
		free(kubeconfig->token_files[i].name);
	}
	free(kubeconfig->token_files);
	strv_deinit(&kubeconfig->warnings);
	free(kubeconfig->context);
	free(kubeconfig);
}
