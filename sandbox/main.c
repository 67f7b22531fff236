/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postern: runs agents in sandboxes that hold a session of the broker and nothing else of the host.
 */
#include "broker/base/confine.h"
#include "broker/base/json.h"
#include "broker/base/log.h"
#include "sandbox/commands.h"
#include "sandbox/plan/caller.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct caller caller;
	struct rlimit core;

	/* Variables of the caller are in here. */
	confine_memory(&core);
	confine_descriptors();
	json_clear_on_free();
	log_init(LOG_LEVEL_WARNING, false);
	caller_init(&caller, environ);
	caller.core = core;
	const int status = commands_main(&caller, argc, argv);
	caller_deinit(&caller);
	return status;
}
