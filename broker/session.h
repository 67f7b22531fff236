/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions: one sandbox's lease on one profile each, with an endpoint of its own. They end at their
 * time, by their owner, with their lease, with their profile, or with the broker; nothing outlives them.
 */
#pragma once

#include "broker/admission.h"
#include "broker/base/compiler.h"
#include "broker/base/list.h"
#include "broker/base/timer.h"
#include "broker/net/address.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct broker;
struct endpoint;
struct err;
struct profile;
struct session;
struct sessions;
struct token_entry;

/* 16 hex digits and the NUL. */
#define SESSION_ID_SIZE 17
#define SESSION_MAX_LABEL 128

/* What a caller asks for; all of it was checked for itself. */
struct session_wish {
	char id[SESSION_ID_SIZE]; /* it is to have */
	char *profile;
	int64_t ttl_s;	       /* 0: the profile's longest */
	char *label;	       /* NULL: none */
	struct address listen; /* unset: the configured place; port 0: one of ours */
	enum pin pin;
	struct address peers[ADMISSION_MAX_ADDRESSES];
	size_t peer_count;
	bool lease;
	uid_t uid;
	pid_t pid;
};

struct session {
	struct list link;
	struct sessions *sessions;
	char id[SESSION_ID_SIZE];
	char *label;
	uid_t owner;
	struct profile *profile; /* what it started with */
	struct token_entry *tokens;
	struct endpoint *endpoint;
	int64_t created_wall_ms;
	int64_t expires_wall_ms;
	struct timer expiry;
	bool leased;
	/* Called when it ends, whatever ended it; may be NULL. The session is still whole. */
	void (*ended)(void *ctx, struct session *session);
	void *ended_ctx;
};

NODISCARD struct sessions *sessions_new(struct broker *broker);
/* The broker stops: ends all of them. */
void sessions_end(struct sessions *sessions);
/* Likewise. NULL is fine. */
void sessions_free(struct sessions *sessions);
size_t sessions_count(const struct sessions *sessions);
/* How many a profile of that name has. */
size_t sessions_count_of(const struct sessions *sessions, const char *profile);
struct list *sessions_list(struct sessions *sessions);

/* Why a session may not be: a code of the control API and a line. */
struct session_refusal {
	const char *code;
	char message[512];
};

/* The profile, the limits, the time. To be asked before a preflight, and before session_open(). */
NODISCARD int session_check(struct sessions *sessions, const struct session_wish *wish,
			    struct session_refusal *refusal);
/* The profile it is for, borrowed, and where its tokens are kept: the caller's reference. */
NODISCARD struct token_entry *session_tokens(struct sessions *sessions,
					     const struct session_wish *wish,
					     struct profile **profile);
/* Opens one. On success it is the registry's, and *out borrowed until it ends. */
NODISCARD int session_open(struct sessions *sessions, const struct session_wish *wish,
			   struct session **out, struct session_refusal *refusal);
/* The one of that id, or NULL. */
struct session *sessions_find(struct sessions *sessions, const char *id);
/* Ends it; `reason` is a word for the audit trail. Its endpoint is closed when this returns. */
void session_end(struct session *session, const char *reason);

/* After a reload: those whose profile is gone, or is for another account or other scopes, end. */
void sessions_recheck(struct sessions *sessions);

/* "172.17.0.1:8174" on loopback, else the advertised name and the port. Room: 320 bytes. */
#define SESSION_ENDPOINT_SIZE 320
void session_endpoint(const struct session *session, char text[static SESSION_ENDPOINT_SIZE]);
