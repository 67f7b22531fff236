/* SPDX-License-Identifier: Apache-2.0 */
/* What may cross of a kubeconfig, key by key, and the repair where something may not. */
#include "broker/base/err.h"
#include "sandbox/kubeconfig/kubeconfig.h"
#include "sandbox/kubeconfig/kubeconfig_impl.h"
#include "sandbox/kubeconfig/kubeconfig_yaml.h"

#include <stddef.h>
#include <string.h>

#define MAKE_TOKEN                                                                           \
	"make a token for a service account that may do what the run needs (kubectl create " \
	"token NAME --duration 2h) and a kubeconfig with it"
#define PLUGIN "runs a credential plugin of this host, which the sandbox does not have; " MAKE_TOKEN
#define PASSWORD "logs in with a name and a password, which do not cross; " MAKE_TOKEN
#define IMPERSONATES "impersonates another user; " MAKE_TOKEN
#define ADMIN                                                                                  \
	"has a client certificate, as administrators do, which nobody can revoke; " MAKE_TOKEN \
	", or pass --allow-admin-kubeconfig"
#define PROXY "is reached through a proxy (proxy-url), which does not cross; delete the key"

struct key_rule {
	const char *key;
	size_t offset;	     /* in struct kubeconfig_written; of what may cross */
	const char *refusal; /* where it may not, or only for administrators */
	bool admin;
	bool ignored; /* has no meaning for a client: is left out */
};

#define TAKES(name, field) {.key = (name), .offset = offsetof(struct kubeconfig_written, field)}
#define ADMINS(name, field)                                    \
	{.key = (name),                                        \
	 .offset = offsetof(struct kubeconfig_written, field), \
	 .refusal = ADMIN,                                     \
	 .admin = true}
#define REFUSES(name, why) {.key = (name), .refusal = (why)}
#define IGNORES(name) {.key = (name), .ignored = true}

static const struct key_rule context_rules[] = {
	IGNORES("cluster"),
	IGNORES("user"),
	TAKES("namespace", namespace),
	IGNORES("extensions"),
};

static const struct key_rule cluster_rules[] = {
	TAKES("server", server),
	TAKES("tls-server-name", tls_server_name),
	TAKES("insecure-skip-tls-verify", insecure),
	TAKES("certificate-authority", ca),
	TAKES("certificate-authority-data", ca_data),
	TAKES("disable-compression", disable_compression),
	REFUSES("proxy-url", PROXY),
	IGNORES("extensions"),
};

static const struct key_rule user_rules[] = {
	TAKES("token", token),
	TAKES("tokenFile", token_file),
	ADMINS("client-certificate", certificate),
	ADMINS("client-certificate-data", certificate_data),
	ADMINS("client-key", key),
	ADMINS("client-key-data", key_data),
	REFUSES("exec", PLUGIN),
	REFUSES("auth-provider", PLUGIN),
	REFUSES("username", PASSWORD),
	REFUSES("password", PASSWORD),
	REFUSES("as", IMPERSONATES),
	REFUSES("as-uid", IMPERSONATES),
	REFUSES("as-groups", IMPERSONATES),
	REFUSES("as-user-extra", IMPERSONATES),
	IGNORES("extensions"),
};

static const struct {
	const struct key_rule *rules;
	size_t count;
} tables[KUBECONFIG_KINDS] = {
	[KUBECONFIG_CONTEXT] = {context_rules, ARRAY_LEN(context_rules)},
	[KUBECONFIG_CLUSTER] = {cluster_rules, ARRAY_LEN(cluster_rules)},
	[KUBECONFIG_USER] = {user_rules, ARRAY_LEN(user_rules)},
};

static const struct key_rule *find_rule(enum kubeconfig_kind kind, const char *key)
{
	for (size_t i = 0; i < tables[kind].count; i++)
		if (!strcmp(tables[kind].rules[i].key, key))
			return &tables[kind].rules[i];
	return NULL;
}

/* The key itself is not shown: a slip of the pen may have put a token there. */
static int check_unknown(struct kubeconfig_reading *reading, enum kubeconfig_kind kind,
			 unsigned line)
{
	if (kind == KUBECONFIG_USER)
		return kubeconfig_refuse(reading, kind, line,
					 "has a key that is none of token, tokenFile and "
					 "extensions; delete it");
	kubeconfig_warn(reading, kind, "has a key that is not known here; it is left out");
	return 0;
}

static int check_member(struct kubeconfig_reading *reading, enum kubeconfig_kind kind,
			const struct yaml_member *member)
{
	const struct key_rule *const rule = find_rule(kind, member->key);

	if (!rule)
		return check_unknown(reading, kind, member->line);
	if (rule->ignored || yaml_is_empty(&member->value))
		return 0;
	if (rule->refusal && !(rule->admin && reading->options->allow_admin))
		return kubeconfig_refuse(reading, kind, member->line, rule->refusal);
	if (member->value.kind != YAML_KIND_TEXT)
		return kubeconfig_refuse(reading, kind, member->line,
					 "has a map or a list where a text belongs; mend the line");
	*(const struct yaml_value **)((char *)&reading->written + rule->offset) = &member->value;
	return 0;
}

int kubeconfig_check(struct kubeconfig_reading *reading)
{
	for (enum kubeconfig_kind kind = 0; kind < KUBECONFIG_KINDS; kind++) {
		const struct yaml_value *const body = reading->entries[kind].body;
		for (size_t i = 0; i < body->count; i++)
			if (check_member(reading, kind, &body->members[i]))
				return -1;
	}
	return 0;
}
