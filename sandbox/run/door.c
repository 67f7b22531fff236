/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/run/door.h"

#include "broker/base/alloc.h"
#include "broker/base/err.h"
#include "broker/base/parse.h"
#include "broker/base/secret.h"
#include "broker/base/strv.h"
#include "broker/base/timer.h"
#include "broker/net/child.h"
#include "broker/net/loop.h"
#include "sandbox/client/exit_status.h"
#include "sandbox/plan/plan.h"
#include "sandbox/run/cidfile.h"
#include "sandbox/run/door_words.h"
#include "sandbox/run/engine.h"
#include "sandbox/run/joined.h"
#include "sandbox/run/lease.h"
#include "sandbox/run/run_dir.h"

#include <string.h>
#include <unistd.h>

/* Of making and of starting a container, on a host that is busy with many. */
#define STEP_TIMEOUT_MS 120000
/* Why a door ended is known a moment after the broker has seen that it did. */
#define WORDS_WAIT_MS 3000

struct door {
	struct door_inputs in;
	enum door_state state;
	struct child *make;  /* a container: the door's, then the sandbox's */
	struct child *look;  /* at both */
	struct child *start; /* the door */
	struct child *wait;  /* for the door's end, which comes too early */
	struct child *words; /* of the door that has ended */
	bool started;
	bool cut; /* a client that makes a container was killed: the engine may go on without it */
	bool joined; /* the sandbox's container is as it should be */
	int status;  /* of the door that has ended */
	struct timer words_wait;
	int exit_status;
	struct err why;
};

static void fail(struct door *door, int exit_status)
{
	door->state = DOOR_FAILED;
	door->exit_status = exit_status;
}

static bool went_well(struct door *door, const char *what, const struct child_result *result)
{
	if (!engine_read_result(door->in.engine, what, result, &door->why))
		return true;
	fail(door, STATUS_ENGINE);
	return false;
}

/* Only what makes the sandbox's container gets what crosses into it. */
static struct child *start_step(struct door *door, const struct strv *argv, int64_t timeout_ms,
				child_done *done)
{
	AUTO_ENVIRON_BLOCK struct environ_block block = {0};

	if (argv == &door->in.plan->argv)
		plan_run_environ(door->in.plan, &block);
	else
		plan_engine_environ(door->in.plan, &block);
	const struct strv env = {block.items, block.count};
	const struct child_request request = {
		.argv = argv,
		.env = &env,
		.max_output_bytes = ENGINE_MAX_ANSWER_BYTES,
		.timeout_ms = timeout_ms,
	};
	return child_start(door->in.loop, &request, done, door);
}

static struct child *start_call(struct door *door, const char *word, int64_t timeout_ms,
				child_done *done)
{
	AUTO_STRV struct strv argv = {0};

	strv_addf(&argv, "%s", door->in.plan->engine.binary);
	strv_addf(&argv, "%s", word);
	strv_addf(&argv, "%s", door->in.plan->door.id);
	return start_step(door, &argv, timeout_ms, done);
}

static void on_words(void *ctx, const struct child_result *result)
{
	struct door *const door = ctx;
	struct err of_lease;

	door->words = NULL;
	door_words(result->errors, door->status, &door->why);
	/* A lease that is lost with it has the status that says whose fault it is. */
	fail(door, lease_state(door->in.lease) == LEASE_LOST ?
			   lease_failure(door->in.lease, &of_lease) :
			   STATUS_ENGINE);
}

/* `wait` prints the exit status. */
static void on_ended(void *ctx, const struct child_result *result)
{
	struct door *const door = ctx;
	AUTO_FREE char *text = xstrndup(result->output, strcspn(result->output, "\n"));
	uint64_t status = 0;

	door->wait = NULL;
	if (!went_well(door, "wait", result))
		return;
	door->status = parse_uint(text, 0, INT32_MAX, &status) ? -1 : (int)status;
	door->words = start_call(door, "logs", STEP_TIMEOUT_MS, on_words);
}

static void on_started(void *ctx, const struct child_result *result)
{
	struct door *const door = ctx;

	door->start = NULL;
	if (!went_well(door, "start", result))
		return;
	door->started = true;
	/* One that has attached is watched by the broker. */
	if (lease_state(door->in.lease) != LEASE_OPEN)
		door->wait = start_call(door, "wait", 0, on_ended);
}

static void on_looked(void *ctx, const struct child_result *result)
{
	struct door *const door = ctx;

	door->look = NULL;
	if (!went_well(door, "container inspect", result))
		return;
	if (joined_check(result->output, result->output_len, door->in.plan->door.id, &door->why))
		fail(door, STATUS_ENGINE);
	else
		door->joined = true;
}

/* What made a container is over. */
static void end_making(struct door *door, const struct child_result *result)
{
	door->make = NULL;
	if (result->end != CHILD_EXITED && result->end != CHILD_NOT_STARTED)
		door->cut = true;
}

static void on_sandbox_made(void *ctx, const struct child_result *result)
{
	struct door *const door = ctx;
	const struct plan *const plan = door->in.plan;
	const char *const args[] = {"container", "inspect", plan->door.id, plan->name, NULL};

	end_making(door, result);
	if (went_well(door, "create", result))
		door->look = engine_start(door->in.engine, args, on_looked, door);
}

/* A container can join one that is made; it need not run before the other starts. */
static void on_door_made(void *ctx, const struct child_result *result)
{
	struct door *const door = ctx;
	struct plan *const plan = door->in.plan;
	char id[CIDFILE_ID_SIZE];

	end_making(door, result);
	if (!went_well(door, "create", result))
		return;
	if (cidfile_read(plan->door.cidfile, id)) {
		(void)err_set(&door->why, ERR_SYSTEM, "the engine does not say the door's id");
		fail(door, STATUS_ENGINE);
		return;
	}
	plan_bind_door(plan, id);
	door->start = start_call(door, "start", STEP_TIMEOUT_MS, on_started);
	door->make = start_step(door, &plan->argv, STEP_TIMEOUT_MS, on_sandbox_made);
}

int door_new(const struct door_inputs *inputs, struct door **out, struct err *err)
{
	const struct lease_door *const of_lease = lease_door(inputs->lease);
	struct plan *const plan = inputs->plan;

	/* Everybody may read it in the directory that is the user's alone: so the door's root may, too. */
	if (plan_bind_attach(plan, of_lease->directory, err) ||
	    run_dir_write(plan->door.ticket, 0644, secret_bytes(of_lease->ticket),
			  secret_len(of_lease->ticket), err))
		return -1;
	struct door *const door = xcalloc(1, sizeof(*door));
	door->in = *inputs;
	door->make = start_step(door, &plan->door.argv, STEP_TIMEOUT_MS, on_door_made);
	*out = door;
	return 0;
}

void door_free(struct door *door)
{
	if (!door)
		return;
	timer_stop(loop_timers(door->in.loop), &door->words_wait);
	child_cancel(door->make);
	child_cancel(door->look);
	child_cancel(door->start);
	child_cancel(door->wait);
	child_cancel(door->words);
	free(door);
}

static void on_no_words(struct timer *timer)
{
	struct door *const door = CONTAINER_OF(timer, struct door, words_wait);

	fail(door, lease_failure(door->in.lease, &door->why));
}

enum door_state door_look(struct door *door)
{
	struct timer_queue *const timers = loop_timers(door->in.loop);
	const enum lease_state lease = lease_state(door->in.lease);

	if (door->state != DOOR_OPENING)
		return door->state;
	if (lease == LEASE_LOST && !timer_is_set(&door->words_wait))
		timer_set_after(timers, &door->words_wait, WORDS_WAIT_MS, on_no_words);
	if (lease == LEASE_OPEN) {
		(void)unlink(door->in.plan->door.ticket);
		if (door->started && door->joined)
			door->state = DOOR_OPEN;
	}
	return door->state;
}

int door_failure(const struct door *door, struct err *err)
{
	*err = door->why;
	return door->exit_status;
}

bool door_is_making(const struct door *door)
{
	return door->make != NULL || door->cut;
}
