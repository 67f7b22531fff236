/* SPDX-License-Identifier: Apache-2.0 */
/* The reduced kubeconfig as JSON, which kubectl and its kin read as they read YAML. */
#include "broker/base/alloc.h"
#include "broker/base/json.h"
#include "sandbox/kubeconfig/base64.h"
#include "sandbox/kubeconfig/kubeconfig.h"
#include "sandbox/kubeconfig/kubeconfig_impl.h"
#include "sandbox/kubeconfig/kubeconfig_yaml.h"

static void add(json_t *object, const char *key, json_t *takes_value)
{
	if (json_object_set_new(object, key, takes_value))
		abort();
}

static void add_text(json_t *object, const char *key, const char *text)
{
	if (text)
		add(object, key, json_string(text));
}

/* The PEM as base64. */
static void add_pem(json_t *object, const char *key, const struct buf *pem)
{
	AUTO_BUF struct buf text;

	if (!pem->len)
		return;
	buf_init_sensitive(&text, pem->len * 4 / 3 + 4);
	base64_encode(&text, pem->data, pem->len);
	add_text(object, key, text.data);
}

static json_t *cluster_of(const struct kubeconfig_reading *reading)
{
	json_t *const cluster = json_object();

	add_text(cluster, "server", reading->server);
	add_text(cluster, "tls-server-name", reading->tls_server_name);
	add_pem(cluster, "certificate-authority-data", &reading->ca);
	if (reading->insecure)
		add(cluster, "insecure-skip-tls-verify", json_true());
	if (reading->disable_compression)
		add(cluster, "disable-compression", json_true());
	return cluster;
}

static json_t *user_of(const struct kubeconfig_reading *reading)
{
	json_t *const user = json_object();

	if (reading->token_file) {
		AUTO_FREE char *inside =
			xasprintf("%s/%s", reading->options->creds_dir, KUBECONFIG_TOKEN_NAME);
		add_text(user, "tokenFile", inside);
	}
	add_text(user, "token", reading->token);
	add_pem(user, "client-certificate-data", &reading->certificate);
	add_pem(user, "client-key-data", &reading->key);
	return user;
}

static json_t *context_of(const struct kubeconfig_reading *reading)
{
	json_t *const context = json_object();

	add_text(context, "cluster", reading->entries[KUBECONFIG_CLUSTER].name);
	add_text(context, "user", reading->entries[KUBECONFIG_USER].name);
	if (reading->written.namespace)
		add_text(context, "namespace", reading->written.namespace->text);
	return context;
}

/* A list of the one entry. */
static json_t *list_of(const struct kubeconfig_reading *reading, enum kubeconfig_kind kind,
		       json_t *takes_body)
{
	json_t *const entry = json_object();
	json_t *const list = json_array();

	add_text(entry, "name", reading->entries[kind].name);
	add(entry, kubeconfig_kind_name(kind), takes_body);
	if (json_array_append_new(list, entry))
		abort();
	return list;
}

static int append(const char *bytes, size_t len, void *ctx)
{
	return buf_append(ctx, bytes, len);
}

void kubeconfig_write(const struct kubeconfig_reading *reading, struct buf *out)
{
	json_auto_t *config = json_object();

	add_text(config, "apiVersion", "v1");
	add_text(config, "kind", "Config");
	add(config, "clusters", list_of(reading, KUBECONFIG_CLUSTER, cluster_of(reading)));
	add(config, "users", list_of(reading, KUBECONFIG_USER, user_of(reading)));
	add(config, "contexts", list_of(reading, KUBECONFIG_CONTEXT, context_of(reading)));
	add_text(config, "current-context", reading->entries[KUBECONFIG_CONTEXT].name);
	if (json_dump_callback(config, append, out, JSON_COMPACT))
		abort();
	buf_add(out, "\n");
}
