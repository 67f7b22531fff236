/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/attach.h"

#include "broker/attach_impl.h"
#include "broker/attach_socket.h"
#include "broker/base/alloc.h"
#include "broker/base/err.h"
#include "broker/base/log.h"
#include "broker/broker.h"
#include "broker/net/bounded_call.h"
#include "broker/net/loop.h"
#include "broker/net/offered_socket.h"
#include "broker/net/seqpacket.h"
#include "broker/refusal_log.h"
#include "broker/session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

/* For the next message. */
#define MESSAGE_TIMEOUT_MS 5000
/* Connections that have shown no good ticket; one more takes the place of the oldest. */
#define MAX_STRANGERS 64
/* What is taken at one wake-up. */
#define ACCEPT_BATCH 16
/* How long accepting rests where the machine has nothing left to accept with. */
#define PAUSE_MS 100

static struct timer_queue *timers_of(const struct attach *attach)
{
	return loop_timers(attach->broker->loop);
}

static void forget_stranger(struct attach_connection *connection)
{
	if (!list_linked(&connection->link))
		return;
	list_remove(&connection->link);
	connection->attach->stranger_count--;
}

void attach_connection_close(struct attach_connection *connection)
{
	struct attach *const attach = connection->attach;

	if (connection->attachment)
		connection->attachment->connection = NULL;
	forget_stranger(connection);
	timer_stop(timers_of(attach), &connection->timer);
	loop_source_free(connection->source);
	bounded_close(connection->fd); /* descriptors may wait in it */
	free(connection);
}

static void on_late(struct timer *timer)
{
	attach_refuse(CONTAINER_OF(timer, struct attach_connection, timer), "slow",
		      "the next message did not come within 5 s");
}

void attach_connection_adopt(struct attach_connection *connection, struct attachment *attachment)
{
	struct attach *const attach = connection->attach;

	forget_stranger(connection);
	connection->attachment = attachment;
	attachment->connection = connection;
	attachment->phase = ATTACHMENT_AWAITS_SOCKETS;
	timer_stop(timers_of(attach), &attachment->timer);
	connection->stage = ATTACH_STAGE_SETUP;
	timer_set_after(timers_of(attach), &connection->timer, MESSAGE_TIMEOUT_MS, on_late);
}

static void note_refusal(const struct attach_connection *connection, const char *reason)
{
	struct attach *const attach = connection->attach;
	const struct refusal refusal = {.reason = reason, .route = "attach"};
	char peer[32];

	attach->refused++;
	(void)snprintf(peer, sizeof(peer), "uid %u", connection->peer.uid);
	refusal_log_note(attach->refusals, &refusal, peer);
}

void attach_refuse(struct attach_connection *connection, const char *reason, const char *text)
{
	struct attachment *const attachment = connection->attachment;
	char line[SEQPACKET_MAX_BYTES];
	char message[SEQPACKET_MAX_BYTES];

	note_refusal(connection, reason);
	if (text) {
		/* A door that has gone needs no answer. */
		(void)snprintf(line, sizeof(line), "no %.*s", 197, text);
		(void)seqpacket_send(connection->fd, line);
	}
	if (attachment)
		log_warning("attach: door refused: session=%s pid=%d reason=%s %s",
			    attachment->session->id, connection->peer.pid, reason,
			    text ? text : "");
	attach_connection_close(connection);
	if (!attachment)
		return;
	(void)snprintf(message, sizeof(message), "the door was refused: %s", text ? text : reason);
	attachment_fail(attachment, "door_refused", "forbidden", message);
}

static void on_end(struct attach_connection *connection)
{
	struct attachment *const attachment = connection->attachment;
	const bool was_up = connection->stage == ATTACH_STAGE_UP;

	attach_connection_close(connection);
	if (attachment)
		attachment_fail(attachment, "door_gone", "conflict",
				was_up ? "the door has gone" :
					 "the door ended before its set-up was done");
}

static void on_message(void *ctx, int fd, uint32_t events)
{
	struct attach_connection *const connection = ctx;
	AUTO_SEQPACKET_MESSAGE struct seqpacket_message message = {0};

	(void)events;
	switch (seqpacket_receive(fd, connection->stage == ATTACH_STAGE_SETUP, &message)) {
	case SEQPACKET_MESSAGE:
		attach_take_message(connection, &message);
		break;
	case SEQPACKET_NOTHING:
		break;
	case SEQPACKET_END:
		on_end(connection);
		break;
	}
	explicit_bzero(message.text, sizeof(message.text));
}

static void evict_oldest(struct attach *attach)
{
	attach_refuse(CONTAINER_OF(list_first(&attach->strangers), struct attach_connection, link),
		      "crowd", NULL);
}

/* -1 with errno: the kernel has no room for one more. */
static int watch(struct attach_connection *connection)
{
	socklen_t len = sizeof(connection->peer);

	if (getsockopt(connection->fd, SOL_SOCKET, SO_PEERCRED, &connection->peer, &len) ||
	    socket_netns(connection->fd, &connection->netns))
		return -1;
	connection->source = loop_add_io(connection->attach->broker->loop, connection->fd, EPOLLIN,
					 LOOP_PRIORITY_NORMAL, on_message, connection);
	return connection->source ? 0 : -1;
}

static void take(struct attach *attach, int takes_fd)
{
	struct attach_connection *const connection = xcalloc(1, sizeof(*connection));

	connection->attach = attach;
	connection->fd = takes_fd;
	if (watch(connection)) {
		log_warning("attach: a connection is dropped: %s", strerrordesc_np(errno));
		bounded_close(takes_fd);
		free(connection);
		return;
	}
	if (attach->stranger_count >= MAX_STRANGERS)
		evict_oldest(attach);
	list_append(&attach->strangers, &connection->link);
	attach->stranger_count++;
	timer_set_after(timers_of(attach), &connection->timer, MESSAGE_TIMEOUT_MS, on_late);
}

static void on_pause_over(struct timer *timer)
{
	struct attach *const attach = CONTAINER_OF(timer, struct attach, pause);

	loop_io_set_enabled(attach->source, true);
}

static void on_connection(void *ctx, int fd, uint32_t events)
{
	struct attach *const attach = ctx;

	(void)events;
	for (int i = 0; i < ACCEPT_BATCH; i++) {
		const int accepted = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (accepted >= 0) {
			take(attach, accepted);
			continue;
		}
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
			/* Out of descriptors a level-triggered socket would spin. */
			loop_io_set_enabled(attach->source, false);
			timer_set_after(timers_of(attach), &attach->pause, PAUSE_MS, on_pause_over);
		}
		return;
	}
}

static int start(struct attach *attach, const char *control_path, struct err *err)
{
	bounded_call_prepare();
	if (attach_socket_open(control_path, &attach->socket, err))
		return -1;
	const int fd = attach_socket_fd(attach->socket);
	if (socket_netns(fd, &attach->netns))
		return errno == ENOPROTOOPT ?
			       err_set(err, ERR_UNSUPPORTED,
				       "the kernel does not tell whose a network namespace is; "
				       "Linux 5.14 or later is needed") :
			       err_set_errno(err, errno, "SO_NETNS_COOKIE");
	attach->source = loop_add_io(attach->broker->loop, fd, EPOLLIN, LOOP_PRIORITY_NORMAL,
				     on_connection, attach);
	return attach->source ? 0 : err_set_errno(err, errno, "watching it");
}

struct attach *attach_open(struct broker *broker, const char *control_path)
{
	struct attach *const attach = xcalloc(1, sizeof(*attach));
	const struct refusal_source source = {.event = "attach.refuse"};
	struct err err;

	attach->broker = broker;
	list_init(&attach->strangers);
	list_init(&attach->attachments);
	attach->refusals = refusal_log_new(timers_of(attach), broker->audit, &source);
	if (start(attach, control_path, &err)) {
		attach->fault = xstrdup(err.text);
		attach_socket_close(attach->socket);
		attach->socket = NULL;
		log_warning("attach socket: %s; sessions attach by gateway only", err.text);
	}
	return attach;
}

void attach_drain(struct attach *attach)
{
	loop_source_free(attach->source);
	attach->source = NULL;
	timer_stop(timers_of(attach), &attach->pause);
	list_for_each(link, &attach->strangers)
		attach_refuse(CONTAINER_OF(link, struct attach_connection, link), "stopping", NULL);
	attach_socket_close(attach->socket);
	attach->socket = NULL;
}

void attach_close(struct attach *attach)
{
	if (!attach)
		return;
	attach_drain(attach);
	refusal_log_free(attach->refusals);
	free(attach->fault);
	free(attach);
}

void attach_set_audit(struct attach *attach, struct audit *audit)
{
	refusal_log_set_audit(attach->refusals, audit);
}

const char *attach_fault(const struct attach *attach)
{
	return attach->fault;
}

size_t attach_doors(const struct attach *attach)
{
	return attach->doors;
}

uint64_t attach_refused(const struct attach *attach)
{
	return attach->refused;
}
