/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/run/run.h"

#include "broker/base/alloc.h"
#include "broker/base/err.h"
#include "broker/base/json.h"
#include "broker/base/timer.h"
#include "broker/net/child.h"
#include "broker/net/loop.h"
#include "sandbox/client/exit_status.h"
#include "sandbox/client/notice.h"
#include "sandbox/client/session_variables.h"
#include "sandbox/plan/plan.h"
#include "sandbox/run/cidfile.h"
#include "sandbox/run/door.h"
#include "sandbox/run/engine.h"
#include "sandbox/run/lease.h"
#include "sandbox/run/pin.h"
#include "sandbox/run/reaper.h"
#include "sandbox/run/run_files.h"
#include "sandbox/run/run_outcome.h"
#include "sandbox/run/signals.h"

#include <signal.h>

/* After `stop` has come back the client has so long to notice. */
#define CLIENT_GRACE_MS 5000

struct run {
	const struct run_inputs *in;
	struct plan *plan;
	struct signals signals;
	struct run_files files;
	struct lease *lease; /* NULL: no session */
	struct reaper reaper;
	struct door *door; /* NULL: open, or none is wanted */
	bool pulled;
	bool pull_failed;
	struct err pull_error;
	bool door_cut;	 /* the engine may still be at work for it */
	struct pin *pin; /* NULL: done, or not needed */
	struct child *client;
	struct run_client_end client_end;
	struct child *stop; /* `ENGINE stop`, while it runs */
	bool stopping;
	struct timer timeout;
	bool timed_out;
	struct timer grace;
	int verdict; /* of ours, over what the command says; 0: none */
};

static struct timer_queue *timers(const struct run *run)
{
	return loop_timers(run->in->loop);
}

static json_t *session_request(const struct plan *plan)
{
	json_t *const request = json_pack("{s:s,s:s,s:s,s:s}", "profile", plan->session.profile,
					  "label", plan->session.label, "attach",
					  attach_name(plan->attach), "preflight",
					  preflight_name(plan->preflight));

	/* An endpoint inside has nobody to be pinned to: only its sandbox reaches it. */
	if (!plan->door.wanted)
		(void)json_object_set_new(request, "pin", json_string("launcher"));
	if (plan->session.ttl_s)
		(void)json_object_set_new(request, "ttl_s", json_integer(plan->session.ttl_s));
	return request;
}

static int bind_session(struct run *run, struct err *err)
{
	const json_t *const session = lease_session(run->lease);
	AUTO_VARIABLES struct variables env = {0};

	session_variables(session, &env);
	return plan_bind_session(run->plan, json_get_string(session, "id"), &env, err);
}

/* Returns the exit status; 0: the session is open, or none is wanted. */
static int open_session(struct run *run, struct err *err)
{
	if (!run->plan->session.wanted)
		return STATUS_OK;
	json_auto_t *request = session_request(run->plan);
	run->lease = lease_new(run->in->loop, run->in->client, request);
	while (lease_state(run->lease) == LEASE_OPENING) {
		if (loop_turn(run->in->loop, err))
			return STATUS_FAILED;
		if (run->signals.ending)
			return STATUS_OK; /* the caller looks at signals */
	}
	if (lease_state(run->lease) == LEASE_LOST)
		return lease_failure(run->lease, err);
	return bind_session(run, err) ? STATUS_BROKER : STATUS_OK;
}

static int start_reaper(struct run *run, struct err *err)
{
	AUTO_ENVIRON_BLOCK struct environ_block block = {0};
	const struct reaper_task task = {
		.binary = run->plan->engine.binary,
		.environ = &block,
		.container = run->plan->name,
		.door = run->plan->door.name,
		.directory = run->plan->directory,
	};

	plan_engine_environ(run->plan, &block);
	return reaper_start(&run->reaper, &task, err);
}

static void on_client_end(void *ctx, const struct child_result *result)
{
	struct run *const run = ctx;

	run->client = NULL;
	signals_set_target(&run->signals, NULL);
	run->client_end = (struct run_client_end){true, result->end, result->status};
}

static void on_timeout(struct timer *timer)
{
	CONTAINER_OF(timer, struct run, timeout)->timed_out = true;
}

static void start_client(struct run *run)
{
	const struct plan *const plan = run->plan;
	const bool is_made = plan->door.wanted;
	AUTO_ENVIRON_BLOCK struct environ_block block = {0};

	if (is_made)
		plan_engine_environ(plan, &block);
	else
		plan_run_environ(plan, &block);
	const struct strv env = {block.items, block.count};
	const struct child_request request = {
		.argv = is_made ? &plan->start_argv : &plan->argv,
		.env = &env,
		.pass_input = plan->stdio != STDIO_OUTPUT,
		.pass_output = true,
	};
	run->client = child_start(run->in->loop, &request, on_client_end, run);
	reaper_tell_client(&run->reaper, child_pid(run->client));
	signals_set_target(&run->signals, run->client);
	if (run->lease && !plan->door.wanted)
		run->pin = pin_new(run->in->loop, run->in->engine, plan->cidfile);
}

/* Kills it where it still runs; no signal is for it from here on. */
static void drop_client(struct run *run)
{
	signals_set_target(&run->signals, NULL);
	child_cancel(TAKE(run->client));
}

static void on_grace_over(struct timer *timer)
{
	struct run *const run = CONTAINER_OF(timer, struct run, grace);

	drop_client(run);
	run->client_end = (struct run_client_end){true, CHILD_SIGNALLED, SIGKILL};
}

/* Whether it worked or not: a client that still waits is not worth waiting for. */
static void on_stopped(void *ctx, const struct child_result *result)
{
	struct run *const run = ctx;
	const bool good = result->end == CHILD_EXITED && !result->status;

	run->stop = NULL;
	if (!run->client_end.over)
		timer_set_after(timers(run), &run->grace, good ? CLIENT_GRACE_MS : 0,
				on_grace_over);
}

static void stop(struct run *run, int verdict)
{
	const char *const args[] = {"stop", run->plan->name, NULL};

	run->verdict = verdict;
	run->stopping = true;
	pin_free(TAKE(run->pin));
	run->stop = engine_start_within(run->in->engine, args,
					ENGINE_CALL_TIMEOUT_MS + run->plan->stop_s * 1000,
					on_stopped, run);
}

static void look_at_pin(struct run *run)
{
	if (!run->pin || pin_state(run->pin) == PIN_WAITING)
		return;
	if (pin_state(run->pin) == PIN_FOUND) {
		lease_pin(run->lease, pin_addresses(run->pin));
		pin_free(TAKE(run->pin));
		return;
	}
	notice("the container has no address after %d s, so it cannot be told from others: "
	       "stopped; give it a network with --network",
	       PIN_TIMEOUT_MS / 1000);
	stop(run, STATUS_ENGINE);
}

/* One look at everything that may end a run from outside. */
static void look(struct run *run)
{
	struct err why;

	if (run->stopping)
		return;
	if (run->timed_out) {
		notice("timed out after %lld s: stopped", (long long)run->plan->timeout_s);
		stop(run, STATUS_TIMEOUT);
	} else if (run->lease && lease_state(run->lease) == LEASE_LOST) {
		const int status = lease_failure(run->lease, &why);
		notice("%s: the container is stopped", why.text);
		stop(run, status);
	} else {
		look_at_pin(run);
	}
}

static int attend(struct run *run, struct err *err)
{
	while (!run->client_end.over) {
		if (loop_turn(run->in->loop, err))
			return -1;
		if (!run->client_end.over)
			look(run);
	}
	return 0;
}

static int outcome(const struct run *run)
{
	return run->verdict ? run->verdict :
			      run_outcome(run->in->engine, run->plan, &run->client_end);
}

/* False where it is not known to be gone. */
static bool remove_container(const struct run *run, const char *name, const char *cidfile)
{
	const char *const args[] = {"rm", "--force", "--volumes", name, NULL};
	char id[CIDFILE_ID_SIZE];
	struct err err;

	if (!engine_ask(run->in->engine, args, NULL, &err) || cidfile_read(cidfile, id))
		return true;
	notice("the container %s is not removed yet: %s", name, err.text);
	return false;
}

/*
 * The sandbox first: it never runs without its door. The session ends between the two, and tells the door;
 * the other way round the broker would see a door that is lost. The engine may still be at work for a client that was
 * killed before it knew a container's id: then, and where the engine does not do as told, the reaper goes
 * on after us.
 */
static void remove_containers(struct run *run)
{
	const struct plan *const plan = run->plan;
	bool all = remove_container(run, plan->name, plan->cidfile);

	lease_free(TAKE(run->lease));
	if (plan->door.wanted)
		all &= remove_container(run, plan->door.name, plan->door.cidfile);
	if (!all || run->door_cut ||
	    (!run_is_made(run->plan) && run->client_end.end == CHILD_SIGNALLED))
		reaper_leave(&run->reaper);
}

/* Turns the loop until there is nothing to wait for. Returns the exit status; 0: go on. */
static int turn(struct run *run, struct err *err)
{
	if (loop_turn(run->in->loop, err))
		return STATUS_FAILED;
	if (run->signals.ending)
		return SIGNALLED(run->signals.ending);
	if (!run->timed_out)
		return STATUS_OK;
	notice("timed out after %lld s, before the command ran", (long long)run->plan->timeout_s);
	return STATUS_TIMEOUT;
}

static int await_door(struct run *run, struct err *err)
{
	enum door_state state = DOOR_OPENING;
	int status = STATUS_OK;

	while (!status && state == DOOR_OPENING) {
		status = turn(run, err);
		state = door_look(run->door);
	}
	return !status && state == DOOR_FAILED ? door_failure(run->door, err) : status;
}

/* Returns the exit status; 0: the sandbox may start, in whose namespace the endpoint is, or none is wanted. */
static int open_door(struct run *run, struct err *err)
{
	const struct door_inputs inputs = {
		.loop = run->in->loop,
		.engine = run->in->engine,
		.plan = run->plan,
		.lease = run->lease,
	};

	if (!run->plan->door.wanted)
		return STATUS_OK;
	if (door_new(&inputs, &run->door, err))
		return STATUS_FAILED;
	const int status = await_door(run, err);
	run->door_cut = door_is_making(run->door);
	door_free(TAKE(run->door));
	return status;
}

/* From the containers' making to their end. */
static int run_container(struct run *run, struct err *err)
{
	if (run->plan->timeout_s)
		timer_set_after(timers(run), &run->timeout, run->plan->timeout_s * 1000,
				on_timeout);
	int status = open_door(run, err);
	if (!status) {
		start_client(run);
		const int failed = attend(run, err);
		child_cancel(TAKE(run->stop));
		drop_client(run);
		pin_free(TAKE(run->pin));
		status = failed ? STATUS_FAILED : outcome(run);
	}
	timer_stop(timers(run), &run->timeout);
	timer_stop(timers(run), &run->grace);
	remove_containers(run);
	return status;
}

static void on_pulled(void *ctx, const struct child_result *result)
{
	struct run *const run = ctx;

	run->client = NULL;
	run->pulled = true;
	run->pull_failed = engine_read_result(run->in->engine, "pull", result, &run->pull_error);
}

/* Returns the exit status; 0: the image is here, or the engine fetches it when it makes the container. */
static int pull_image(struct run *run, struct err *err)
{
	AUTO_ENVIRON_BLOCK struct environ_block block = {0};
	int status = STATUS_OK;

	if (!run->plan->pull.count)
		return STATUS_OK;
	notice("the engine pulls %s", run->plan->image);
	plan_engine_environ(run->plan, &block);
	const struct strv env = {block.items, block.count};
	const struct child_request request = {
		.argv = &run->plan->pull,
		.env = &env,
		.max_output_bytes = ENGINE_MAX_ANSWER_BYTES,
	};
	run->client = child_start(run->in->loop, &request, on_pulled, run);
	while (!status && !run->pulled)
		status = turn(run, err);
	child_cancel(TAKE(run->client));
	if (status || !run->pull_failed)
		return status;
	*err = run->pull_error;
	(void)err_prefix(err, "the engine failed before the command ran");
	return STATUS_ENGINE;
}

/* Returns the exit status; a text in err where it is ours and was not said yet. */
static int execute(struct run *run, struct err *err)
{
	/* The reaper is first: from here on a kill leaves nothing. */
	if (signals_init(&run->signals, run->in->loop, err) || start_reaper(run, err) ||
	    run_files_make(&run->files, run->in, err))
		return STATUS_FAILED;
	run_dir_sweep(run->in->base);
	int status = run->signals.ending ? STATUS_OK : pull_image(run, err);
	if (!status && !run->signals.ending)
		status = open_session(run, err);
	if (!status && run->signals.ending)
		status = SIGNALLED(run->signals.ending);
	return status ? status : run_container(run, err);
}

int run_execute(const struct run_inputs *inputs)
{
	struct run run = {.in = inputs, .plan = inputs->plan, .reaper = {.socket = -1}};
	struct err err = {0};

	const int status = execute(&run, &err);
	if (err.code)
		notice("%s", err.text);
	lease_free(run.lease);
	run_files_remove(&run.files);
	reaper_dismiss(&run.reaper);
	signals_deinit(&run.signals);
	return status;
}
