/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker's control API, as its clients see it: calls that are answered once, and leases, which last
 * as long as both sides keep them.
 */
#pragma once

#include "broker/base/compiler.h"

#include <jansson.h>
#include <stdbool.h>

struct broker_call;
struct broker_client;
struct broker_lease;
struct err;
struct loop;

/* Hex digits of a session's id, and the NUL. */
#define BROKER_SESSION_ID_SIZE 17
/* A session's answer may wait for a mint. */
#define BROKER_OPEN_TIMEOUT_MS 45000
#define BROKER_CALL_TIMEOUT_MS 10000

/* What a call brought. Borrowed for the time of the callback. */
struct broker_answer {
	int exit_status;  /* 0, or what a refusal means by the contract's section 8 */
	const char *code; /* of the API; "unreachable" where no answer came; "" without an error */
	const char *message; /* one line for people; "" without an error */
	const json_t *body;  /* NULL where there is none */
};

typedef void broker_done(void *ctx, const struct broker_answer *answer);

/* The refusal as one line for people. Returns -1. */
int broker_answer_err(const struct broker_client *client, const struct broker_answer *answer,
		      struct err *err);

NODISCARD int broker_client_new(struct loop *loop, const char *socket_path,
				struct broker_client **out, struct err *err);
/* Every call and lease must have ended or been cancelled. NULL is fine. */
void broker_client_free(struct broker_client *client);
/* Borrowed. */
const char *broker_client_path(const struct broker_client *client);

/*
 * One call: `done` is called exactly once, later, unless it is cancelled first. `body` (NULL: none) is
 * borrowed until this returns. Does not fail: what is wrong comes as an answer.
 */
NODISCARD struct broker_call *broker_client_call(struct broker_client *client, const char *method,
						 const char *path, const json_t *body,
						 broker_done *done, void *ctx);
/* NULL is fine. */
void broker_call_cancel(struct broker_call *call);

struct broker_question {
	const char *method;
	const char *path;
	const json_t *body; /* NULL: none */
};

/*
 * The same for who has nothing else to wait for: turns the loop until the answer is here. `body` (may be
 * NULL: not wanted) is the caller's reference, NULL where the answer has none. Returns the exit status:
 * 0, or that of the refusal with its text in err.
 */
NODISCARD int broker_client_ask(struct broker_client *client,
				const struct broker_question *question, json_t **body,
				struct err *err);

/* Paths of the API. The id must be one. The caller's. */
bool broker_session_id_is_valid(const char *id);
NODISCARD char *broker_session_path(const char *id);

struct broker_lease_handler {
	/* Once: the session is open. Borrowed. */
	void (*opened)(void *ctx, const json_t *session);
	/* Any number of times after it. May be NULL. */
	void (*event)(void *ctx, const json_t *event);
	/*
	 * Once, last: never opened, or ended by the broker or with it. exit_status is not 0. The handle
	 * is dead then.
	 */
	void (*ended)(void *ctx, const struct broker_answer *why);
};

/* Opens a leased session; "lease" is added to the request, which is borrowed until this returns. */
NODISCARD struct broker_lease *broker_lease_open(struct broker_client *client,
						 const json_t *request,
						 const struct broker_lease_handler *handler,
						 void *ctx);
/* Ends it (the session with it) without a callback. NULL is fine. */
void broker_lease_close(struct broker_lease *lease);
