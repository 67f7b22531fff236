/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the attach socket. Private to attach.c, attach_door.c and attachment.c.
 */
#pragma once

#include "broker/attach.h"
#include "broker/base/list.h"
#include "broker/base/timer.h"

#include <sys/socket.h>

struct attach_socket;
struct loop_source;
struct refusal_log;
struct seqpacket_message;

struct attach {
	struct broker *broker;
	/* NULL: there is none, and `fault` says why; or there is none any more. */
	struct attach_socket *socket;
	struct loop_source *source; /* of new connections; NULL once it drains */
	struct timer pause;	    /* accepting rests until then */
	char *fault;
	uint64_t netns;	       /* the broker's own */
	struct list strangers; /* connections without a good ticket, oldest first */
	size_t stranger_count;
	struct list attachments;
	size_t doors;
	struct refusal_log *refusals;
	uint64_t refused;
};

enum attach_stage {
	ATTACH_STAGE_FIRST, /* it is to name a ticket or a secret */
	ATTACH_STAGE_SETUP, /* it has been told to go on, and is to hand over its sockets */
	ATTACH_STAGE_UP,    /* it has nothing more to say */
};

struct attach_connection {
	struct list link; /* of the strangers */
	struct attach *attach;
	struct attachment *attachment; /* NULL: a stranger */
	enum attach_stage stage;
	int fd;
	struct loop_source *source;
	struct timer timer; /* of its next message */
	uint64_t netns;
	struct ucred peer; /* as it was when it connected */
};

enum attachment_phase {
	ATTACHMENT_AWAITS_TICKET,
	ATTACHMENT_AWAITS_REOFFER,
	ATTACHMENT_AWAITS_SOCKETS,
	ATTACHMENT_UP,
};

struct attachment {
	struct list link;
	struct attach *attach;
	struct session *session;
	enum attachment_phase phase;
	struct secret *ticket; /* NULL once it is used */
	struct secret *secret;
	struct attach_connection *connection; /* NULL: the door has not come */
	struct timer timer;		      /* of its coming */
};

/* attach.c */
void attach_connection_close(struct attach_connection *connection);
/* The ticket or secret was good. */
void attach_connection_adopt(struct attach_connection *connection, struct attachment *attachment);
/*
 * Refuses with a line for the door, unless NULL, counts, and closes; the session that it is for, if any,
 * fails. `reason` is a constant of a closed set.
 */
void attach_refuse(struct attach_connection *connection, const char *reason, const char *text);

/* attach_door.c */
void attach_take_message(struct attach_connection *connection, struct seqpacket_message *message);

/* attachment.c */
/* The one whose ticket or secret that is; `by_ticket` says which. NULL: none. */
struct attachment *attachment_find(const struct attach *attach, bool by_ticket, const char *key);
/* The session ends, with an answer for who waits for its door. */
void attachment_fail(struct attachment *attachment, const char *reason, const char *code,
		     const char *message);
