/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attachment of one session: the wait for its door, and its end.
 */
#include "broker/attach_impl.h"
#include "broker/attach_message.h"
#include "broker/attach_socket.h"
#include "broker/base/alloc.h"
#include "broker/base/random.h"
#include "broker/base/secret.h"
#include "broker/broker.h"
#include "broker/net/loop.h"
#include "broker/net/seqpacket.h"
#include "broker/session.h"

#include <stdio.h>
#include <string.h>

#define TICKET_MS 60000
/* A door offers its sockets again for 10 s, from before its session can be opened again. */
#define REOFFER_MS 15000

static struct secret *new_key(void)
{
	char key[ATTACH_KEY_LEN + 1];

	random_hex(key, sizeof(key));
	struct secret *const secret = secret_new(key, ATTACH_KEY_LEN);
	explicit_bzero(key, sizeof(key));
	return secret;
}

void attachment_fail(struct attachment *attachment, const char *reason, const char *code,
		     const char *message)
{
	struct session_refusal refusal = {.code = code};

	(void)snprintf(refusal.message, sizeof(refusal.message), "%s", message);
	session_fail(attachment->session, reason, &refusal);
}

static void on_nobody_came(struct timer *timer)
{
	struct attachment *const attachment = CONTAINER_OF(timer, struct attachment, timer);

	attachment_fail(attachment, "door_late", "conflict",
			attachment->phase == ATTACHMENT_AWAITS_TICKET ?
				"no door came with the ticket within 60 s" :
				"no door came with the secret within 15 s");
}

struct attachment *attachment_new(struct attach *attach, struct session *session,
				  struct secret *secret)
{
	struct attachment *const attachment = xcalloc(1, sizeof(*attachment));

	attachment->attach = attach;
	attachment->session = session;
	attachment->phase = secret ? ATTACHMENT_AWAITS_REOFFER : ATTACHMENT_AWAITS_TICKET;
	attachment->ticket = secret ? NULL : new_key();
	attachment->secret = secret ? secret_ref(secret) : new_key();
	list_append(&attach->attachments, &attachment->link);
	timer_set_after(loop_timers(attach->broker->loop), &attachment->timer,
			secret ? REOFFER_MS : TICKET_MS, on_nobody_came);
	return attachment;
}

void attachment_free(struct attachment *attachment)
{
	if (!attachment)
		return;
	struct attach *const attach = attachment->attach;
	if (attachment->connection) {
		if (attach->socket)
			(void)seqpacket_send(attachment->connection->fd, "end");
		attach_connection_close(attachment->connection);
	}
	attach->doors -= attachment->phase == ATTACHMENT_UP;
	timer_stop(loop_timers(attach->broker->loop), &attachment->timer);
	list_remove(&attachment->link);
	secret_unref(attachment->ticket);
	secret_unref(attachment->secret);
	free(attachment);
}

bool attachment_is_up(const struct attachment *attachment)
{
	return attachment->phase == ATTACHMENT_UP;
}

json_t *attachment_json(const struct attachment *attachment)
{
	const char *const ticket = attachment->ticket ? secret_bytes(attachment->ticket) : NULL;
	json_t *const door = json_pack("{s:s,s:s*,s:s}", "dir",
				       attach_socket_directory(attachment->attach->socket),
				       "ticket", ticket, "secret",
				       secret_bytes(attachment->secret));

	if (!door)
		abort();
	return door;
}

/* Every one is compared, each in a time that does not depend on its bytes. */
static struct attachment *find(const struct attach *attach, bool by_ticket,
			       const struct secret *key)
{
	struct attachment *found = NULL;

	list_for_each(link, &attach->attachments) {
		struct attachment *const attachment = CONTAINER_OF(link, struct attachment, link);
		const struct secret *const own = by_ticket ? attachment->ticket :
							     attachment->secret;
		if (own && secret_equal(own, key))
			found = attachment;
	}
	return found;
}

struct attachment *attachment_find(const struct attach *attach, bool by_ticket, const char *key)
{
	struct secret *const presented = secret_new(key, ATTACH_KEY_LEN);
	struct attachment *const found = find(attach, by_ticket, presented);

	if (found && by_ticket) {
		/* It is good once. */
		secret_unref(found->ticket);
		found->ticket = NULL;
	}
	secret_unref(presented);
	return found;
}

bool attach_knows(const struct attach *attach, const struct secret *secret)
{
	return find(attach, false, secret) != NULL;
}
