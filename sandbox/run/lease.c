/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/run/lease.h"

#include "broker/base/alloc.h"
#include "broker/base/clock.h"
#include "broker/base/err.h"
#include "broker/base/json.h"
#include "broker/base/secret.h"
#include "broker/base/timer.h"
#include "broker/net/loop.h"
#include "sandbox/client/broker_client.h"
#include "sandbox/client/exit_status.h"
#include "sandbox/client/notice.h"

#include <string.h>

struct lease {
	struct loop *loop;
	struct broker_client *client;
	json_t *request;
	json_t *session;   /* NULL: never opened */
	json_t *addresses; /* of the sandbox; NULL: not known yet */
	/* Of an inside session: what its door needs, and what proves a later one to be the same lease's. */
	bool inside;
	char *door_directory;
	struct secret *ticket;
	struct secret *secret;
	struct lease_door door;
	/* Which broker this is: a session that ends while its broker lives was ended on purpose. */
	char *broker;
	enum lease_state state;
	bool pinned;
	struct broker_lease *held;
	struct broker_call *call; /* one at a time: PATCH while open, questions while retrying */
	struct timer retry;
	int64_t gone_ms; /* when the broker went away */
	bool said_gone;
	int exit_status;
	struct err why;
};

static const struct broker_lease_handler handler;

/* A door that attached once is known by its secret: it offers itself again to a broker that is new. */
static void hold(struct lease *lease)
{
	if (lease->secret)
		(void)json_object_set_new(lease->request, "door",
					  json_pack("{s:s}", "secret",
						    secret_bytes(lease->secret)));
	lease->held = broker_lease_open(lease->client, lease->request, &handler, lease);
}

struct lease *lease_new(struct loop *loop, struct broker_client *client, const json_t *request)
{
	struct lease *const lease = xcalloc(1, sizeof(*lease));

	lease->loop = loop;
	lease->client = client;
	lease->request = json_copy((json_t *)request);
	const char *const attach = json_get_string(request, "attach");
	lease->inside = attach && !strcmp(attach, "inside");
	hold(lease);
	return lease;
}

static void let_go(struct lease *lease)
{
	broker_call_cancel(TAKE(lease->call));
	broker_lease_close(TAKE(lease->held));
	timer_stop(loop_timers(lease->loop), &lease->retry);
}

void lease_free(struct lease *lease)
{
	if (!lease)
		return;
	let_go(lease);
	json_decref(lease->request);
	json_decref(lease->session);
	json_decref(lease->addresses);
	free(lease->door_directory);
	secret_unref(lease->ticket);
	secret_unref(lease->secret);
	free(lease->broker);
	free(lease);
}

enum lease_state lease_state(const struct lease *lease)
{
	return lease->state;
}

const json_t *lease_session(const struct lease *lease)
{
	return lease->session;
}

const struct lease_door *lease_door(const struct lease *lease)
{
	return lease->ticket ? &lease->door : NULL;
}

bool lease_pinned(const struct lease *lease)
{
	return lease->pinned;
}

int lease_failure(const struct lease *lease, struct err *err)
{
	*err = lease->why;
	return lease->exit_status;
}

static void lose(struct lease *lease, const struct broker_answer *answer)
{
	lease->state = LEASE_LOST;
	lease->exit_status = answer->exit_status;
	(void)broker_answer_err(lease->client, answer, &lease->why);
	let_go(lease);
}

static char *broker_of(const json_t *status)
{
	const char *const started = json_get_string(status, "started_at");

	return xasprintf("%lld %s", (long long)json_integer_value(json_object_get(status, "pid")),
			 started ? started : "");
}

static void on_broker_known(void *ctx, const struct broker_answer *answer)
{
	struct lease *const lease = ctx;

	lease->call = NULL;
	if (!answer->exit_status) {
		free(lease->broker);
		lease->broker = broker_of(answer->body);
	}
	if (lease->addresses && !lease->pinned)
		lease_pin(lease, NULL);
}

static void on_pinned(void *ctx, const struct broker_answer *answer)
{
	struct lease *const lease = ctx;

	lease->call = NULL;
	if (!answer->exit_status)
		lease->pinned = true;
	/* A broker that is gone is the held lease's to notice; the next session has the addresses. */
	else if (answer->exit_status != STATUS_BROKER)
		lose(lease, answer);
}

/* `addresses` NULL: those that are known already. */
void lease_pin(struct lease *lease, json_t *addresses)
{
	if (addresses) {
		lease->addresses = json_incref(addresses);
		(void)json_object_set(lease->request, "peer", addresses);
	}
	if (lease->state != LEASE_OPEN || lease->call)
		return;
	AUTO_FREE char *path = broker_session_path(json_get_string(lease->session, "id"));
	json_auto_t *body = json_pack("{s:O}", "peer", lease->addresses);
	lease->call = broker_client_call(lease->client, "PATCH", path, body, on_pinned, lease);
}

/* The answer of a broker that does not keep to the contract. */
static void lose_to_strange(struct lease *lease, const char *what)
{
	const struct broker_answer strange = {.exit_status = STATUS_BROKER,
					      .code = "unreachable",
					      .message = what};

	lose(lease, &strange);
}

/* From here on the sandbox is served. */
static void open_up(struct lease *lease)
{
	lease->state = LEASE_OPEN;
	lease->gone_ms = 0;
	lease->said_gone = false;
	lease->call = broker_client_call(lease->client, "GET", "/v1/status", NULL, on_broker_known,
					 lease);
}

/* The sandbox knows this address and no other. */
static void keep_endpoint(struct lease *lease)
{
	lease->pinned = json_object_get(lease->request, "peer") != NULL;
	(void)json_object_set(lease->request, "listen", json_object_get(lease->session, "listen"));
}

/* The first time, the session says how its door attaches. */
static void keep_door(struct lease *lease)
{
	json_t *const door = json_object_get(lease->session, "door");
	const char *const directory = json_get_string(door, "dir");
	const char *const ticket = json_get_string(door, "ticket");
	const char *const secret = json_get_string(door, "secret");

	if (!directory || !ticket || !secret) {
		lose_to_strange(lease, "its session says no door");
		return;
	}
	lease->door_directory = xstrdup(directory);
	lease->ticket = secret_new(ticket, strlen(ticket));
	lease->secret = secret_new(secret, strlen(secret));
	lease->door = (struct lease_door){lease->door_directory, lease->ticket};
}

static int64_t retry_ms(const struct lease *lease)
{
	return lease->inside ? LEASE_INSIDE_RETRY_MS : LEASE_RETRY_MS;
}

/* How long a broker that is away is still waited for; 0 or less: no longer. */
static int64_t patience_ms(const struct lease *lease)
{
	const int64_t now_ms = clock_boot_ms(loop_timers(lease->loop)->clock);

	return lease->gone_ms + retry_ms(lease) - now_ms;
}

static void on_never_attached(struct timer *timer)
{
	static const struct broker_answer never = {
		.exit_status = STATUS_BROKER,
		.code = "ended",
		.message = "it is back, but the door did not attach to it again",
	};

	lose(CONTAINER_OF(timer, struct lease, retry), &never);
}

/* Nobody is served before the door has attached: to a broker that is new, as long as that is waited for. */
static void await_door(struct lease *lease)
{
	if (lease->state == LEASE_OPENING) {
		lease->state = LEASE_ATTACHING;
		keep_door(lease);
		return;
	}
	const int64_t left_ms = patience_ms(lease);
	timer_set_after(loop_timers(lease->loop), &lease->retry, left_ms > 0 ? left_ms : 0,
			on_never_attached);
}

static void on_opened(void *ctx, const json_t *session)
{
	struct lease *const lease = ctx;
	const bool again = lease->session != NULL;

	if (!broker_session_id_is_valid(json_get_string(session, "id"))) {
		lose_to_strange(lease, "its session has no id");
		return;
	}
	json_decref(lease->session);
	lease->session = json_copy((json_t *)session);
	/* What the sandbox may do was settled before it started. */
	(void)json_object_set_new(lease->request, "preflight", json_string("none"));
	if (lease->inside) {
		await_door(lease);
		return;
	}
	keep_endpoint(lease);
	open_up(lease);
	if (again)
		notice("the broker is back; the session was opened again");
}

static void on_event(void *ctx, const json_t *event)
{
	struct lease *const lease = ctx;
	const char *const name = json_get_string(event, "event");

	if (!lease->inside || lease->state == LEASE_OPEN || !name || strcmp(name, "attached") != 0)
		return;
	if (lease->state == LEASE_RETRYING)
		notice("the broker is back; the session was opened again");
	timer_stop(loop_timers(lease->loop), &lease->retry);
	open_up(lease);
}

static void on_retry(struct timer *timer);

/* Not at once: what ends a session may also be a broker that is there. */
static void say_gone(struct lease *lease)
{
	if (!lease->said_gone)
		notice("the broker is gone; waiting %lld s for it",
		       (long long)retry_ms(lease) / 1000);
	lease->said_gone = true;
}

static void retry_later(struct lease *lease, const struct broker_answer *answer)
{
	if (patience_ms(lease) <= 0) {
		lose(lease, answer);
		lease->exit_status = STATUS_BROKER;
		return;
	}
	timer_set_after(loop_timers(lease->loop), &lease->retry, LEASE_RETRY_EVERY_MS, on_retry);
}

static void on_found(void *ctx, const struct broker_answer *answer)
{
	static const struct broker_answer ended = {
		.exit_status = STATUS_BROKER,
		.code = "ended",
		.message = "it has ended the session: closed by hand, expired or reloaded",
	};
	static const struct broker_answer ended_inside = {
		.exit_status = STATUS_BROKER,
		.code = "ended",
		.message = "it has ended the session: its door ended, or it was closed by hand, "
			   "expired or reloaded",
	};
	struct lease *const lease = ctx;

	lease->call = NULL;
	if (answer->exit_status) {
		say_gone(lease);
		retry_later(lease, answer);
		return;
	}
	AUTO_FREE char *broker = broker_of(answer->body);
	if (lease->broker && !strcmp(lease->broker, broker))
		lose(lease, lease->inside ? &ended_inside : &ended);
	else
		hold(lease);
}

static void on_ready(void *ctx, const struct broker_answer *answer)
{
	struct lease *const lease = ctx;

	lease->call = NULL;
	if (answer->exit_status) {
		say_gone(lease);
		retry_later(lease, answer);
	} else {
		lease->call = broker_client_call(lease->client, "GET", "/v1/status", NULL, on_found,
						 lease);
	}
}

/* A broker that drains still says who it is: ask first whether it is one to stay with. */
static void on_retry(struct timer *timer)
{
	struct lease *const lease = CONTAINER_OF(timer, struct lease, retry);

	lease->call = broker_client_call(lease->client, "GET", "/readyz", NULL, on_ready, lease);
}

static void on_ended(void *ctx, const struct broker_answer *answer)
{
	struct lease *const lease = ctx;

	lease->held = NULL;
	if (lease->state == LEASE_OPENING || lease->state == LEASE_ATTACHING) {
		lose(lease, answer);
		return;
	}
	if (!lease->gone_ms)
		lease->gone_ms = clock_boot_ms(loop_timers(lease->loop)->clock);
	lease->state = LEASE_RETRYING;
	lease->pinned = false;
	broker_call_cancel(TAKE(lease->call));
	retry_later(lease, answer);
}

static const struct broker_lease_handler handler = {
	.opened = on_opened,
	.event = on_event,
	.ended = on_ended,
};
