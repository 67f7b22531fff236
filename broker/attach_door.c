/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of a door's messages: a ticket or a secret, then its listening sockets.
 */
#include "broker/attach_impl.h"
#include "broker/attach_message.h"
#include "broker/audit.h"
#include "broker/base/err.h"
#include "broker/base/secret.h"
#include "broker/broker.h"
#include "broker/endpoint.h"
#include "broker/net/loop.h"
#include "broker/net/offered_socket.h"
#include "broker/net/seqpacket.h"
#include "broker/profile.h"
#include "broker/recipe/recipe.h"
#include "broker/session.h"

#include <stdio.h>
#include <string.h>

/* The session that has a door in that namespace, or one on its way; NULL: none. */
static const struct attachment *find_neighbour(const struct attach_connection *connection)
{
	list_for_each(link, &connection->attach->attachments) {
		const struct attachment *const other = CONTAINER_OF(link, struct attachment, link);
		if (other->connection && other->connection != connection &&
		    other->connection->netns == connection->netns)
			return other;
	}
	return NULL;
}

/* The door has changed nothing yet, and does not unless it is told to go on. */
static void let_in(struct attach_connection *connection, struct attachment *attachment)
{
	attach_connection_adopt(connection, attachment);
	if (connection->netns == connection->attach->netns)
		attach_refuse(connection, "namespace",
			      "the door is in the host's own network namespace");
	else if (find_neighbour(connection))
		attach_refuse(connection, "namespace",
			      "another session has a door in this network namespace");
	else if (seqpacket_send(connection->fd, "go"))
		attach_refuse(connection, "slow", NULL);
}

static void take_first(struct attach_connection *connection, const struct attach_message *message)
{
	const bool by_ticket = message->kind == ATTACH_MESSAGE_TICKET;
	struct attachment *const attachment =
		attachment_find(connection->attach, by_ticket, message->key);

	if (!attachment && by_ticket)
		attach_refuse(connection, "ticket",
			      "the ticket is unknown, used, or older than 60 s");
	else if (!attachment) /* its session may be opened again any moment */
		attach_connection_close(connection);
	else if (!by_ticket && attachment->phase != ATTACHMENT_AWAITS_REOFFER)
		attach_refuse(connection, "secret", "the session does not wait for its door");
	else
		let_in(connection, attachment);
}

/* -1 with the fault of the first that is not what it must be. */
static int check_sockets(const struct attach_connection *connection,
			 const struct seqpacket_message *message,
			 struct endpoint_socket sockets[static ENDPOINT_MAX_SOCKETS],
			 struct err *err)
{
	const struct session *const session = connection->attachment->session;
	const char *const *const addresses = session->profile->backend->inside;

	if (message->cut || !message->fd_count)
		return err_set(err, ERR_INVALID, "%s than %d sockets came",
			       message->cut ? "more" : "fewer",
			       message->cut ? ENDPOINT_MAX_SOCKETS : 1);
	for (size_t i = 0; i < message->fd_count; i++) {
		struct offered_socket_terms terms = {.netns = connection->netns};
		struct offered_socket offered;
		if (!addresses[i] || address_parse(&terms.local, addresses[i]))
			return err_set(err, ERR_INVALID, "socket %zu: is one too many", i + 1);
		if (offered_socket_read(message->fds[i], &offered, err) ||
		    offered_socket_judge(&offered, &terms, err))
			return err_prefix(err, "socket %zu", i + 1);
		sockets[i] = (struct endpoint_socket){message->fds[i], terms.local};
	}
	return 0;
}

static void audit_attached(const struct attach_connection *connection, size_t sockets)
{
	const struct session *const session = connection->attachment->session;
	struct audit *const audit = connection->attach->broker->audit;
	json_t *const event = audit_event(audit, "session.attach");

	audit_add(event, "session", session->id);
	audit_add(event, "profile", session->profile->settings->name);
	audit_add(event, "label", session->label);
	audit_add_int(event, "uid", connection->peer.uid);
	audit_add_int(event, "pid", connection->peer.pid);
	audit_add_int(event, "sockets", (int64_t)sockets);
	(void)audit_write(audit, event);
}

static void say_ok(const struct attach_connection *connection)
{
	char line[SEQPACKET_MAX_BYTES];

	(void)snprintf(line, sizeof(line), "ok %s", secret_bytes(connection->attachment->secret));
	/* Where the door has gone meanwhile, its end comes next. */
	(void)seqpacket_send(connection->fd, line);
	explicit_bzero(line, sizeof(line));
}

static void take_sockets(struct attach_connection *connection, struct seqpacket_message *message)
{
	struct attach *const attach = connection->attach;
	struct attachment *const attachment = connection->attachment;
	struct session *const session = attachment->session;
	struct endpoint_socket sockets[ENDPOINT_MAX_SOCKETS];
	const size_t count = message->fd_count;
	struct err err;

	if (check_sockets(connection, message, sockets, &err)) {
		attach_refuse(connection, "descriptors", err.text);
		return;
	}
	message->fd_count = 0; /* the endpoint's from here on */
	if (endpoint_attach(session->endpoint, sockets, count, &err)) {
		attach_refuse(connection, "descriptors", err.text);
		return;
	}
	timer_stop(loop_timers(attach->broker->loop), &connection->timer);
	connection->stage = ATTACH_STAGE_UP;
	attachment->phase = ATTACHMENT_UP;
	attach->doors++;
	audit_attached(connection, count);
	say_ok(connection);
	if (session->attached)
		session->attached(session->holder);
}

void attach_take_message(struct attach_connection *connection, struct seqpacket_message *message)
{
	struct attach_message said;
	const bool known = !attach_message_read(message->text, message->len, &said);
	const bool is_sockets = known && said.kind == ATTACH_MESSAGE_SOCKETS;

	if (connection->attach->broker->draining)
		attach_refuse(connection, "stopping", "the broker is stopping");
	else if (connection->stage == ATTACH_STAGE_FIRST && known && !is_sockets && !message->cut)
		take_first(connection, &said);
	else if (connection->stage == ATTACH_STAGE_SETUP && is_sockets)
		take_sockets(connection, message);
	else
		attach_refuse(connection, "message", NULL);
}
