/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/run/run_outcome.h"

#include "broker/base/buf.h"
#include "broker/base/err.h"
#include "sandbox/client/exit_status.h"
#include "sandbox/client/notice.h"
#include "sandbox/plan/plan.h"
#include "sandbox/run/cidfile.h"
#include "sandbox/run/container.h"
#include "sandbox/run/engine.h"

#include <signal.h>
#include <string.h>

static void inspect(const struct engine *engine, const struct plan *plan,
		    struct container *container)
{
	const char *const args[] = {"container", "inspect", plan->name, NULL};
	AUTO_BUF struct buf out;
	struct err ignored;

	buf_init(&out, ENGINE_MAX_ANSWER_BYTES);
	if (!engine_ask(engine, args, &out, &ignored))
		(void)!container_read(container, out.data ? out.data : "", out.len);
}

bool run_is_made(const struct plan *plan)
{
	char id[CIDFILE_ID_SIZE];

	return !cidfile_read(plan->cidfile, id);
}

/* What the engine's own words leave open: did the command run at all, and what killed it? */
static void explain(const struct engine *engine, const struct plan *plan, int status)
{
	AUTO_CONTAINER struct container container = {0};

	if (run_is_made(plan))
		inspect(engine, plan, &container);
	if (status == SIGNALLED(SIGKILL) && container.oom_killed)
		notice("the container was killed: out of memory");
	else if (status == STATUS_ENGINE && !container.started)
		notice("the engine failed before the command ran");
	else if (status == STATUS_NOT_EXECUTABLE && !container.started)
		notice("the command cannot be executed in the image");
	else if (status == STATUS_NOT_FOUND && !container.started)
		notice("the command was not found in the image");
}

/*
 * A client that only starts a container ends with 1 whatever went wrong before the command ran. So it is the
 * engine that knows.
 */
static int status_of_started(const struct engine *engine, const struct plan *plan)
{
	AUTO_CONTAINER struct container container = {0};

	inspect(engine, plan, &container);
	if (container.started && !container.running)
		return container.exit_status;
	if (!container.started && (container.exit_status == STATUS_NOT_EXECUTABLE ||
				   container.exit_status == STATUS_NOT_FOUND))
		return container.exit_status;
	return STATUS_ENGINE;
}

int run_outcome(const struct engine *engine, const struct plan *plan,
		const struct run_client_end *end)
{
	int status = end->status;

	if (end->end == CHILD_NOT_STARTED) {
		notice("cannot start %s: %s", plan->engine.binary, strerror(status));
		return STATUS_ENGINE;
	}
	if (end->end != CHILD_EXITED)
		return SIGNALLED(status);
	if (status && plan->door.wanted)
		status = status_of_started(engine, plan);
	if (status == STATUS_ENGINE || status == STATUS_NOT_EXECUTABLE ||
	    status == STATUS_NOT_FOUND || status == SIGNALLED(SIGKILL))
		explain(engine, plan, status);
	return status;
}
