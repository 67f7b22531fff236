/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Docker Engine.
 */
#include "broker/base/buf.h"
#include "broker/base/err.h"
#include "broker/base/json.h"
#include "broker/base/log.h"
#include "sandbox/run/engine.h"

#include <string.h>

/* A daemon that is not there leaves "ServerErrors", and some clients exit with 0 all the same. */
static int read_version(struct engine *engine, const json_t *info, struct engine_facts *facts,
			struct err *err)
{
	const char *const version = json_get_string(info, "ServerVersion");
	const json_t *const why = json_array_get(json_object_get(info, "ServerErrors"), 0);
	struct quoted q;

	if (version && *version) {
		facts->version = engine_keep(engine, version);
		return 0;
	}
	if (json_is_string(why))
		return err_set(err, ERR_SYSTEM, "the engine does not answer: docker info: %s",
			       quote_str(&q, json_string_value(why)));
	return err_set(err, ERR_SYSTEM, "docker says no version");
}

/* `docker info` lists "name=rootless" among the security options of a rootless daemon. */
static int probe(struct engine *engine, struct engine_facts *facts, struct err *err)
{
	static const char *const args[] = {"info", "--format", "{{json .}}", NULL};
	AUTO_BUF struct buf out;
	const json_t *option;
	size_t i;

	buf_init(&out, ENGINE_MAX_ANSWER_BYTES);
	if (engine_ask(engine, args, &out, err))
		return err_prefix(err, "the engine does not answer");
	json_auto_t *info = json_read_object(out.data, out.len);
	if (!info)
		return err_set(err, ERR_SYSTEM, "docker info: the answer is not JSON");
	if (read_version(engine, info, facts, err))
		return -1;
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
