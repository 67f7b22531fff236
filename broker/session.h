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

struct attachment;
struct broker;
struct endpoint;
struct err;
struct profile;
struct secret;
struct session;
struct sessions;
struct token_entry;

/* 16 hex digits and the NUL. */
#define SESSION_ID_SIZE 17
#define SESSION_MAX_LABEL 128

/* How a sandbox reaches its session. */
enum attach_way {
	ATTACH_GATEWAY, /* at an address of the host */
	ATTACH_INSIDE,	/* in its own network namespace, by a door */
};

/* "gateway" or "inside". */
const char *attach_way_name(enum attach_way attach);

/* What a caller asks for; all of it was checked for itself. */
struct session_wish {
	char id[SESSION_ID_SIZE]; /* it is to have */
	char *profile;
	int64_t ttl_s; /* 0: the profile's longest */
	char *label;   /* NULL: none */
	enum attach_way attach;
	struct secret *door_secret; /* of a door that lost its broker; NULL: a new door */
	struct address listen;	    /* unset: the configured place; port 0: one of ours */
	enum pin pin;
	struct address peers[ADMISSION_MAX_ADDRESSES];
	size_t peer_count;
	bool lease;
	uid_t uid;
	pid_t pid;
};

/* Why a session may not be: a code of the control API and a line. */
struct session_refusal {
	const char *code;
	char message[512];
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
	struct attachment *attachment; /* NULL: by the gateway */
	int64_t created_wall_ms;
	int64_t expires_wall_ms;
	struct timer expiry;
	bool leased;
	/* Who holds the lease. Each may be NULL. */
	void (*attached)(void *holder); /* its door is there */
	/* It ends, whatever ended it, and is still whole; `why` where something failed, else NULL. */
	void (*ended)(void *holder, struct session *session, const struct session_refusal *why);
	void *holder;
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
/* The same where something failed, which its holder is told. */
void session_fail(struct session *session, const char *reason, const struct session_refusal *why);

/* After a reload: those whose profile is gone, or is for another account or other scopes, end. */
void sessions_recheck(struct sessions *sessions);

#define SESSION_ENDPOINT_SIZE 320
/*
 * "127.0.0.1:8174" on loopback, the address alone inside, else the advertised name and the port.
 */
void session_endpoint(const struct session *session, char text[static SESSION_ENDPOINT_SIZE]);
/* Its host alone, without brackets. */
void session_host(const struct session *session, char text[static SESSION_ENDPOINT_SIZE]);
