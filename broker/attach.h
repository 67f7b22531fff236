/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attach socket: where doors, each inside the network namespace of one sandbox, hand over the
 * sockets that they listen on there. A door's connection is its session's lease on the namespace: with
 * either the other ends.
 */
#pragma once

#include "broker/base/compiler.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct attach;
struct attachment;
struct audit;
struct broker;
struct secret;
struct session;

/*
 * Opens it beside the control socket. Where it cannot be had, the log and attach_fault() say why, and
 * sessions can be opened the other way only.
 */
NODISCARD struct attach *attach_open(struct broker *broker, const char *control_path);
/* Every attachment must have been freed. NULL is fine. */
void attach_close(struct attach *attach);
/*
 * The broker stops: no door is let in any more, and none is told to end. Those that are attached lose their
 * connection and offer themselves to the next broker, as after a crash.
 */
void attach_drain(struct attach *attach);
void attach_set_audit(struct attach *attach, struct audit *audit);

/* Why no door can attach, with what to do instead; NULL: it can. */
const char *attach_fault(const struct attach *attach);
/* Doors that are attached, and connections that were refused. */
size_t attach_doors(const struct attach *attach);
uint64_t attach_refused(const struct attach *attach);
/* True where a session has that secret. */
bool attach_knows(const struct attach *attach, const struct secret *secret);

/*
 * A session begins to wait for its door: for one with a new ticket, or, with the secret of before, for one
 * that has lost its broker. What does not come in time fails the session. The secret is referenced.
 */
NODISCARD struct attachment *attachment_new(struct attach *attach, struct session *session,
					    struct secret *secret);
/* The session ends: the door is told, and its connection closed. NULL is fine. */
void attachment_free(struct attachment *attachment);
bool attachment_is_up(const struct attachment *attachment);
/* What the launcher needs for the door, once: the directory, the ticket, the secret. */
NODISCARD json_t *attachment_json(const struct attachment *attachment);
