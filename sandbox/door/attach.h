/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The door's end of the attach socket: one datagram a message. What ends the door ends the process here: a
 * signal, "end", a refusal, a broker that is gone.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stdbool.h>

struct door_options;
struct endpoint_sockets;

/* Of a ticket and of a session's secret: 128 bits as lower-case hex digits. */
#define SECRET_LENGTH 32

enum answer {
	ANSWER_UNKNOWN,
	ANSWER_GO,
	ANSWER_OK, /* "ok SECRET" */
	ANSWER_END,
	ANSWER_NO, /* "no TEXT" */
};

/* Where SECRET and TEXT begin. */
#define ANSWER_REST 3

/* What a message of `length` bytes, with a NUL behind them, says. Pure. */
enum answer answer_read(const char *message, size_t length);

struct attach {
	int fd;				      /* the connection, or -1 */
	int signals;			      /* signalfd */
	char greeting[2 + SECRET_LENGTH + 1]; /* "T TICKET", "R SECRET" once attached */
};

/* Takes the signals, shows the ticket and waits until it is accepted. */
void attach_open(struct attach *attach, const struct door_options *options);

/* Hands the listening sockets over. False: the broker went away. */
NODISCARD bool attach_offer(struct attach *attach, const struct endpoint_sockets *sockets);

/* Holds the namespace until told to end; offers the sockets again to a broker that was restarted. */
_Noreturn void attach_hold(struct attach *attach, const struct endpoint_sockets *sockets);
