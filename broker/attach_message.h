/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a door may say on the attach socket. Pure.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stddef.h>

/* Digits of a ticket or a secret: 128 bits. */
#define ATTACH_KEY_LEN 32

enum attach_message_kind {
	ATTACH_MESSAGE_TICKET,	/* T: the first contact */
	ATTACH_MESSAGE_REOFFER, /* R: after a broker has gone */
	ATTACH_MESSAGE_SOCKETS, /* D: comes with the descriptors */
};

struct attach_message {
	enum attach_message_kind kind;
	const char *key; /* of a T or R, ATTACH_KEY_LEN bytes, borrowed; else NULL */
};

/* -1 for everything else. */
NODISCARD int attach_message_read(const char *text, size_t len, struct attach_message *out);
