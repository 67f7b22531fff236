/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session put into a plan.
 */
#include "broker/base/alloc.h"
#include "broker/base/err.h"
#include "broker/base/log.h"
#include "broker/base/secret.h"
#include "sandbox/plan/environment.h"
#include "sandbox/plan/plan.h"
#include "sandbox/plan/plan_argv.h"

#include <string.h>
#include <strings.h>

static bool is_no_proxy(const char *name)
{
	return !strcasecmp(name, "NO_PROXY");
}

/* A broker that is not ours could name anything. */
static int check_session_name(const char *name, struct err *err)
{
	struct quoted q;
	const enum environment_verdict verdict = environment_judge(name);

	if (variable_name_valid(name) &&
	    (verdict == ENVIRONMENT_SESSION || verdict == ENVIRONMENT_CROSSES))
		return 0;
	return err_set(err, ERR_INVALID, "the broker's session sets %s, which no session may",
		       quote_str(&q, name));
}

static int take_no_proxy(struct plan *plan, const char *value, struct err *err)
{
	AUTO_STRV struct strv hosts = {0};

	if (strv_split(&hosts, value))
		return err_set(err, ERR_INVALID,
			       "the broker's session has no list of hosts in NO_PROXY");
	for (size_t i = 0; i < hosts.count; i++)
		if (!strv_contains(&plan->no_proxy, hosts.items[i]))
			strv_add(&plan->no_proxy, hosts.items[i], strlen(hosts.items[i]));
	return 0;
}

static bool is_of_session(const struct variable *variable)
{
	return variable->source == VARIABLE_SESSION && !is_no_proxy(variable->name);
}

/* Takes the values of an earlier session away; the names keep their places. */
static void forget_values(struct plan *plan)
{
	for (size_t i = 0; i < plan->container.count; i++)
		if (is_of_session(&plan->container.items[i]))
			secret_unref(TAKE(plan->container.items[i].value));
}

/* Drops what was expected of this session, or was an earlier one's, and did not come. */
static void drop_unset(struct plan *plan)
{
	size_t kept = 0;

	for (size_t i = 0; i < plan->container.count; i++) {
		struct variable *const variable = &plan->container.items[i];
		if (is_of_session(variable) && !variable->value)
			free(variable->name);
		else
			plan->container.items[kept++] = *variable;
	}
	plan->container.count = kept;
}

int plan_bind_session(struct plan *plan, const char *id, const struct variables *env,
		      struct err *err)
{
	for (size_t i = 0; i < env->count; i++)
		if (!env->items[i].value || check_session_name(env->items[i].name, err))
			return -1;
	forget_values(plan);
	for (size_t i = 0; i < env->count; i++) {
		const char *const name = env->items[i].name;
		const char *const value = secret_bytes(env->items[i].value);
		if (!is_no_proxy(name))
			variables_set(&plan->container, name, VARIABLE_SESSION, value);
		else if (take_no_proxy(plan, value, err))
			return -1;
	}
	drop_unset(plan);
	environment_no_proxy(&plan->container, &plan->no_proxy, VARIABLE_SESSION);
	free(plan->session.id);
	plan->session.id = xstrdup(id);
	plan_render(plan);
	return 0;
}
