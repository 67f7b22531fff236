/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/plan/environment.h"

#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/base/secret.h"
#include "broker/base/strv.h"
#include "sandbox/plan/caller.h"
#include "sandbox/plan/options.h"
#include "sandbox/plan/variables.h"

#include <string.h>

/* What the engine's process finds programs by, whatever the caller's is. */
#define CLIENT_PATH "/usr/sbin:/usr/bin:/sbin:/bin"

/* By exact name. What a session sets first, in the order in which plans show it. */
static const struct {
	const char *name;
	enum environment_verdict verdict;
} names[] = {
	{"GCE_METADATA_HOST", ENVIRONMENT_SESSION},
	{"GCE_METADATA_IP", ENVIRONMENT_SESSION},
	{"GCE_METADATA_ROOT", ENVIRONMENT_SESSION},
	{"METADATA_SERVER_DETECTION", ENVIRONMENT_SESSION},
	{"GCE_METADATA_MTLS_MODE", ENVIRONMENT_SESSION},
	{"HOME", ENVIRONMENT_OWN},
	{"KUBECONFIG", ENVIRONMENT_OWN},
	{"PATH", ENVIRONMENT_OWN},
	/* It crosses by the engine client's environment, whose own it is. */
	{"DOCKER_CONFIG", ENVIRONMENT_OWN},
	{"GOOGLE_APPLICATION_CREDENTIALS", ENVIRONMENT_DENIED},
	{"GOOGLE_OAUTH_ACCESS_TOKEN", ENVIRONMENT_DENIED},
	{"GOOGLE_GHA_CREDS_PATH", ENVIRONMENT_DENIED},
	{"SSH_AUTH_SOCK", ENVIRONMENT_DENIED},
	{"SSH_AGENT_PID", ENVIRONMENT_DENIED},
	{"DOCKER_HOST", ENVIRONMENT_DENIED},
	{"DOCKER_CERT_PATH", ENVIRONMENT_DENIED},
	{"DOCKER_TLS_VERIFY", ENVIRONMENT_DENIED},
	{"CONTAINER_HOST", ENVIRONMENT_DENIED},
	{"GITHUB_TOKEN", ENVIRONMENT_DENIED},
	{"GH_TOKEN", ENVIRONMENT_DENIED},
	{"NPM_TOKEN", ENVIRONMENT_DENIED},
	{"LD_PRELOAD", ENVIRONMENT_DENIED},
	{"LD_LIBRARY_PATH", ENVIRONMENT_DENIED},
	{"XDG_RUNTIME_DIR", ENVIRONMENT_DENIED},
	{"DBUS_SESSION_BUS_ADDRESS", ENVIRONMENT_DENIED},
};

/* No GOOGLE_ and no GCP_: the routing to models lives there. */
static const struct {
	const char *prefix;
	enum environment_verdict verdict;
} prefixes[] = {
	{"GCE_METADATA_", ENVIRONMENT_SESSION}, {"POSTERN_", ENVIRONMENT_OWN},
	{"AWS_", ENVIRONMENT_DENIED},		{"AZURE_", ENVIRONMENT_DENIED},
	{"ARM_", ENVIRONMENT_DENIED},		{"TF_", ENVIRONMENT_DENIED},
	{"CLOUDSDK_", ENVIRONMENT_DENIED},
};

/* Taken out of what the image sets: a credential that wins over the session, a way back to the host. */
static const char *const unset[] = {
	"GOOGLE_APPLICATION_CREDENTIALS",
	"CLOUDSDK_CONFIG",
	"CLOUDSDK_AUTH_CREDENTIAL_FILE_OVERRIDE",
	"CLOUDSDK_AUTH_ACCESS_TOKEN_FILE",
	"SSH_AUTH_SOCK",
	"DOCKER_HOST",
	"CONTAINER_HOST",
	"HTTP_PROXY",
	"http_proxy",
	"HTTPS_PROXY",
	"https_proxy",
};

/* Beside those above; set whether or not a proxy crosses, so that a later one is bypassed too. */
static const char *const no_proxy_names[] = {"NO_PROXY", "no_proxy"};

enum environment_verdict environment_judge(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(names[i].name, name))
			return names[i].verdict;
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
		if (!strncmp(prefixes[i].prefix, name, strlen(prefixes[i].prefix)))
			return prefixes[i].verdict;
	return ENVIRONMENT_CROSSES;
}

const char *environment_session_name(size_t i)
{
	size_t count = 0;

	while (names[count].verdict == ENVIRONMENT_SESSION)
		count++;
	if (i < count)
		return names[i].name;
	return i - count < ARRAY_LEN(no_proxy_names) ? no_proxy_names[i - count] : NULL;
}

static void add_once(struct strv *list, const char *item)
{
	if (!strv_contains(list, item))
		strv_add(list, item, strlen(item));
}

void environment_cross(const struct run_options *options, const struct caller *caller,
		       struct variables *container, struct strv *refused, struct strv *absent)
{
	const struct strv *const asked[] = {&options->env, &options->env_force};

	for (size_t list = 0; list < ARRAY_LEN(asked); list++) {
		const bool forced = asked[list] == &options->env_force;
		for (size_t i = 0; i < asked[list]->count; i++) {
			const char *const name = asked[list]->items[i];
			const char *const value = caller_variable(caller, name);
			const enum environment_verdict verdict = environment_judge(name);
			if (verdict > ENVIRONMENT_DENIED ||
			    (verdict == ENVIRONMENT_DENIED && !forced &&
			     !strv_contains(&options->env_force, name)))
				add_once(refused, name);
			else if (value)
				variables_set(container, name, VARIABLE_CALLER, value);
			else
				add_once(absent, name);
		}
	}
}

void environment_unset(struct variables *container)
{
	for (size_t i = 0; i < ARRAY_LEN(unset); i++)
		if (!variables_find(container, unset[i]))
			variables_set(container, unset[i], VARIABLE_UNSET, NULL);
}

/* Sets the caller's own value of a variable, if it has one. */
static void keep(struct variables *client, const struct caller *caller, const char *name)
{
	const char *const value = caller_nonblank(caller, name);

	if (value)
		variables_set(client, name, VARIABLE_CLIENT, value);
}

void environment_client(enum engine_kind kind, const struct caller *caller, const char *home,
			const char *config, struct variables *client)
{
	variables_set(client, "PATH", VARIABLE_CLIENT, CLIENT_PATH);
	switch (kind) {
	case ENGINE_DOCKER:
		keep(client, caller, "DOCKER_HOST");
		variables_set(client, "DOCKER_CONFIG", VARIABLE_CLIENT, config);
		variables_set(client, "HOME", VARIABLE_CLIENT, home);
		break;
	case ENGINE_PODMAN:
		keep(client, caller, "HOME");
		keep(client, caller, "XDG_RUNTIME_DIR");
		break;
	case ENGINE_NONE:
		break;
	}
}

static const char *value_of(const struct variables *list, const char *name)
{
	const struct variable *const found = variables_find(list, name);

	return found && found->value ? secret_bytes(found->value) : "";
}

/* Whether the comma-separated list has the item. */
static bool lists(const char *text, const char *item)
{
	const size_t len = strlen(item);

	for (const char *at = text; *at; at += strspn(at, ", ")) {
		const size_t field = strcspn(at, ", ");
		if (field == len && !memcmp(at, item, len))
			return true;
		at += field;
	}
	return false;
}

/* The caller's. */
static char *extend(const char *start, const struct strv *hosts)
{
	char *list = xstrdup(start);

	for (size_t i = 0; i < hosts->count; i++) {
		if (lists(list, hosts->items[i]))
			continue;
		char *const longer = xasprintf("%s%s%s", list, *list ? "," : "", hosts->items[i]);
		free(list);
		list = longer;
	}
	return list;
}

void environment_no_proxy(struct variables *container, const struct strv *hosts,
			  enum variable_source source)
{
	const char *const upper = value_of(container, no_proxy_names[0]);
	const char *const lower = value_of(container, no_proxy_names[1]);
	AUTO_FREE char *of_upper = extend(*upper ? upper : lower, hosts);
	AUTO_FREE char *of_lower = extend(*lower ? lower : upper, hosts);

	/* Both were made before either is set: setting frees what they were made from. */
	variables_set(container, no_proxy_names[0], source, of_upper);
	variables_set(container, no_proxy_names[1], source, of_lower);
}

void environment_refused(const struct strv *refused, struct buf *out)
{
	if (!refused->count)
		return;
	buf_addf(out, "%zu variable%s refused: ", refused->count, refused->count > 1 ? "s" : "");
	for (size_t i = 0; i < refused->count; i++)
		buf_addf(out, "%s%s", i ? ", " : "", refused->items[i]);
}
