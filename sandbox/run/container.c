/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/run/container.h"

#include "broker/base/json.h"
#include "broker/base/parse.h"
#include "broker/net/address.h"
#include "sandbox/plan/plan.h"

#include <string.h>

void container_deinit(struct container *container)
{
	json_decref(container->addresses);
	*container = (struct container){0};
}

static void add_address(json_t *addresses, const char *text)
{
	struct address address;

	if (text && !address_parse_ip(&address, text) &&
	    json_array_size(addresses) < CONTAINER_MAX_ADDRESSES)
		(void)json_array_append_new(addresses, json_string(text));
}

static uint64_t label_number(const json_t *labels, const char *name)
{
	const char *const text = json_get_string(labels, name);
	uint64_t number = 0;

	return text && !parse_uint(text, 0, UINT64_MAX, &number) ? number : 0;
}

/* Before it first ran, StartedAt is the year 1 in both engines. */
static bool has_started(const json_t *state)
{
	const char *const at = json_get_string(state, "StartedAt");

	return at && *at && strncmp(at, "0001-01-01T", strlen("0001-01-01T")) != 0;
}

int container_read(struct container *out, const char *bytes, size_t len)
{
	json_error_t error;
	json_auto_t *array = json_loadb(bytes, len, 0, &error);
	const json_t *const object = json_array_get(array, 0);
	const json_t *const state = json_object_get(object, "State");
	const json_t *const networks =
		json_object_get(json_object_get(object, "NetworkSettings"), "Networks");
	const json_t *const labels = json_object_get(json_object_get(object, "Config"), "Labels");
	const json_t *network;
	const char *name;

	if (!json_is_object(state))
		return -1;
	out->running = json_is_true(json_object_get(state, "Running"));
	out->started = has_started(state);
	out->oom_killed = json_is_true(json_object_get(state, "OOMKilled"));
	out->exit_status = (int)json_integer_value(json_object_get(state, "ExitCode"));
	out->launcher = (struct plan_launcher){
		.pid = label_number(labels, PLAN_LABEL_LAUNCHER_PID),
		.start = label_number(labels, PLAN_LABEL_LAUNCHER_START),
		.pid_namespace = label_number(labels, PLAN_LABEL_LAUNCHER_NAMESPACE),
	};
	out->addresses = json_array();
	json_object_foreach((json_t *)networks, name, network) {
		add_address(out->addresses, json_get_string(network, "IPAddress"));
		add_address(out->addresses, json_get_string(network, "GlobalIPv6Address"));
	}
	return 0;
}
