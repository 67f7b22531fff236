/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Docker Engine.
 */
#include "broker/base/buf.h"
#include "broker/base/err.h"
#include "broker/base/json.h"
#include "sandbox/engine.h"

#include <string.h>

/* `docker info` lists "name=rootless" among the security options of a rootless daemon. */
static int probe(struct engine *engine, struct engine_facts *facts, struct err *err)
{
	static const char *const args[] = {"info", "--format", "{{json .}}", NULL};
	AUTO_BUF struct buf out;
	const json_t *option;
	size_t i;

	buf_init(&out, ENGINE_MAX_ANSWER_BYTES);
	if (engine_ask(engine, args, &out, err))
		return -1;
	json_auto_t *info = json_read_object(out.data, out.len);
	if (!info)
		return err_set(err, ERR_SYSTEM, "docker info: the answer is not JSON");
	json_array_foreach(json_object_get(info, "SecurityOptions"), i, option)
		if (json_is_string(option) && !strcmp(json_string_value(option), "name=rootless"))
			facts->rootless = true;
	facts->kernel = engine_keep(engine, json_get_string(info, "KernelVersion"));
	facts->runtime = engine_keep(engine, json_get_string(info, "DefaultRuntime"));
	return 0;
}

const struct engine_driver engine_docker = {
	.kind = ENGINE_DOCKER,
	.probe = probe,
	.driver_key = "Driver",
};
