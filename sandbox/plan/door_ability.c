/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/plan/door_ability.h"

#include "broker/base/compiler.h"
#include "broker/base/err.h"
#include "broker/base/log.h"
#include "sandbox/plan/engine_kind.h"
#include "sandbox/plan/version.h"

#include <string.h>

/* What --attach gateway loses: said wherever it is the way out. */
#define GATEWAY                                                                                  \
	"or --attach gateway, whose endpoint the host and every container on its bridges reach " \
	"(only the peer's pin keeps them out) and which needs the host's firewall rules"

/* The oldest Podman that a door was tried with. */
#define PODMAN_MAJOR 4
#define PODMAN_MINOR 3

/* Their containers are processes of the host's kernel. gVisor and Kata have a network stack of their own. */
static const char *const runtimes[] = {"runc", "crun", "youki", "io.containerd.runc.v2"};

/* On others (macvlan, ipvlan) the address could be answered on the network of the host itself. */
static const char *const drivers[] = {"bridge", "null"};

static bool is_one_of(const char *name, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(name, list[i]))
			return true;
	return false;
}

bool door_runtime_is_known(const char *runtime)
{
	return is_one_of(runtime, runtimes, ARRAY_LEN(runtimes));
}

static int check_engine(const struct engine_facts *engine, const char *network, struct err *err)
{
	const bool is_podman = engine->kind == ENGINE_PODMAN;
	const char *const version = engine->version ? engine->version : "of unknown version";

	if (is_podman && !version_is_at_least(engine->version, PODMAN_MAJOR, PODMAN_MINOR))
		return err_set(err, ERR_UNSUPPORTED,
			       "podman %s: no endpoint inside a sandbox was ever tried with it; "
			       "use %d.%d or later, " GATEWAY,
			       version, PODMAN_MAJOR, PODMAN_MINOR);
	if (is_podman && (!network || strcmp(network, "none") != 0))
		return err_set(err, ERR_UNSUPPORTED,
			       "podman %s: an endpoint inside a sandbox was tried with --network "
			       "none alone; use that, " GATEWAY,
			       version);
	if (!is_podman && engine->rootless)
		return err_set(err, ERR_UNSUPPORTED,
			       "rootless docker %s: no endpoint inside a sandbox was ever tried "
			       "with it; use a daemon of root's, " GATEWAY,
			       version);
	return 0;
}

/* Of a network that was not asked about it is known. */
static bool is_on_bridge(const struct engine_facts *engine)
{
	return !engine->network_driver ||
	       is_one_of(engine->network_driver, drivers, ARRAY_LEN(drivers));
}

int door_check_ability(const struct engine_facts *engine, const char *network, struct err *err)
{
	struct quoted q;

	if (check_engine(engine, network, err))
		return -1;
	if (!version_is_at_least(engine->kernel, DOOR_KERNEL_MAJOR, DOOR_KERNEL_MINOR))
		return err_set(err, ERR_UNSUPPORTED,
			       "Linux %s does not tell the broker one network namespace from "
			       "another; use %d.%d or later, " GATEWAY,
			       quote_str(&q, engine->kernel), DOOR_KERNEL_MAJOR, DOOR_KERNEL_MINOR);
	if (engine->runtime && !door_runtime_is_known(engine->runtime))
		return err_set(err, ERR_UNSUPPORTED,
			       "the runtime %s may have a network stack of its own, in which no "
			       "endpoint can be opened; use runc, crun or youki, " GATEWAY,
			       quote_str(&q, engine->runtime));
	if (!is_on_bridge(engine))
		return err_set(err, ERR_UNSUPPORTED,
			       "the network %s has the driver %s, on which a sandbox's endpoint "
			       "was never tried; use a bridge network or none",
			       network, quote_str(&q, engine->network_driver));
	return 0;
}

int gateway_check_ability(const struct engine_facts *engine, const char *network, struct err *err)
{
	struct quoted q;

	if (is_on_bridge(engine))
		return 0;
	return err_set(err, ERR_UNSUPPORTED,
		       "the network %s has the driver %s, whose packets the host's firewall rules "
		       "do not see; use a bridge network or none, or take the risk with "
		       "--allow-unverified-firewall",
		       network, quote_str(&q, engine->network_driver));
}
