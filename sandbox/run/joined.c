/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/run/joined.h"

#include "broker/base/alloc.h"
#include "broker/base/err.h"
#include "broker/base/json.h"
#include "broker/base/log.h"
#include "sandbox/plan/door_ability.h"

#include <jansson.h>
#include <stdbool.h>
#include <string.h>

static int refuse(const char *what, const char *is, struct err *err)
{
	struct quoted q;

	return err_set(
		err, ERR_INVALID,
		"the engine did not make the sandbox as it was asked to: its %s is %s; it is "
		"not started",
		what, quote_str(&q, is ? is : "not said"));
}

static const char *host_text(const json_t *container, const char *key)
{
	const char *const text = json_get_string(json_object_get(container, "HostConfig"), key);

	return text ? text : "";
}

/* Docker says it of the host's configuration; Podman says "oci" there, and the name beside it. */
static const char *runtime_of(const json_t *container)
{
	const char *const of_podman = json_get_string(container, "OCIRuntime");

	return of_podman ? of_podman : host_text(container, "Runtime");
}

/* Nothing, an own one, or what the image's pod would share: never another's. */
static bool is_own_namespace(const char *mode)
{
	return !*mode || !strcmp(mode, "private");
}

static int check_rights(const json_t *sandbox, struct err *err)
{
	const json_t *const host = json_object_get(sandbox, "HostConfig");
	const json_t *const added = json_object_get(host, "CapAdd");

	if (!json_is_false(json_object_get(host, "Privileged")))
		return refuse("privilege", "not known to be none", err);
	if (added && !json_is_null(added) && (!json_is_array(added) || json_array_size(added)))
		return refuse("list of added capabilities", "not empty", err);
	if (!is_own_namespace(host_text(sandbox, "PidMode")))
		return refuse("PidMode", host_text(sandbox, "PidMode"), err);
	return 0;
}

int joined_check(const char *bytes, size_t len, const char *door_id, struct err *err)
{
	json_error_t error;
	json_auto_t *array = json_loadb(bytes, len, 0, &error);
	const json_t *const door = json_array_get(array, 0);
	const json_t *const sandbox = json_array_get(array, 1);
	const char *const id = json_get_string(door, "Id");
	AUTO_FREE char *mode = xasprintf("container:%s", door_id);

	if (!id || strcmp(id, door_id) != 0 || !json_is_object(sandbox))
		return refuse("door", id, err);
	if (strcmp(host_text(sandbox, "NetworkMode"), mode) != 0)
		return refuse("NetworkMode", host_text(sandbox, "NetworkMode"), err);
	if (check_rights(sandbox, err))
		return -1;
	const char *const runtime = runtime_of(sandbox);
	if (!door_runtime_is_known(runtime) || strcmp(runtime, runtime_of(door)) != 0)
		return refuse("runtime", runtime, err);
	if (strcmp(host_text(sandbox, "UsernsMode"), host_text(door, "UsernsMode")) != 0)
		return refuse("UsernsMode, unlike the door's,", host_text(sandbox, "UsernsMode"),
			      err);
	return 0;
}
