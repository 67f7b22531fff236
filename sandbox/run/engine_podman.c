/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Podman. Its argument vectors are Docker's but for the host's name, which it knows since 4.7.
 */
#include "broker/base/buf.h"
#include "broker/base/err.h"
#include "broker/base/json.h"
#include "broker/net/address.h"
#include "sandbox/run/engine.h"

#include <string.h>

/* The gateway of the default network: [{"subnets":[{"gateway":"10.88.0.1"}]}]. */
static const char *default_gateway(struct engine *engine)
{
	static const char *const args[] = {"network", "inspect", "podman", NULL};
	AUTO_BUF struct buf out;
	struct err ignored;
	struct address address;
	json_error_t error;

	buf_init(&out, ENGINE_MAX_ANSWER_BYTES);
	if (engine_ask(engine, args, &out, &ignored))
		return NULL;
	json_auto_t *networks = json_loadb(out.data ? out.data : "", out.len, 0, &error);
	const json_t *const subnets = json_object_get(json_array_get(networks, 0), "subnets");
	const char *const gateway = json_get_string(json_array_get(subnets, 0), "gateway");
	return gateway && !address_parse_ip(&address, gateway) ? engine_keep(engine, gateway) :
								 NULL;
}

static int probe(struct engine *engine, struct engine_facts *facts, struct err *err)
{
	static const char *const args[] = {"info", "--format", "{{json .}}", NULL};
	AUTO_BUF struct buf out;

	buf_init(&out, ENGINE_MAX_ANSWER_BYTES);
	if (engine_ask(engine, args, &out, err))
		return err_prefix(err, "the engine does not answer");
	json_auto_t *info = json_read_object(out.data, out.len);
	if (!info)
		return err_set(err, ERR_SYSTEM, "podman info: the answer is not JSON");
	const char *const version = json_get_string(json_object_get(info, "version"), "Version");
	if (!version || !*version)
		return err_set(err, ERR_SYSTEM, "podman says no version");
	facts->version = engine_keep(engine, version);
	const json_t *const host = json_object_get(info, "host");
	const json_t *const security = json_object_get(host, "security");
	facts->kernel = engine_keep(engine, json_get_string(host, "kernel"));
	facts->runtime =
		engine_keep(engine, json_get_string(json_object_get(host, "ociRuntime"), "name"));
	facts->rootless = json_is_true(json_object_get(security, "rootless"));
	/* A rootless container does not reach the bridge's gateway of the host. */
	if (!facts->rootless)
		facts->host_address = default_gateway(engine);
	return 0;
}

const struct engine_driver engine_podman = {
	.kind = ENGINE_PODMAN,
	.probe = probe,
	.driver_key = "driver",
};
