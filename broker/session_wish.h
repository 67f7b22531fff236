/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON of a session: what a caller asks for, and what it is told.
 */
#pragma once

#include "broker/base/compiler.h"
#include "broker/session.h"

#include <jansson.h>

enum preflight {
	PREFLIGHT_NONE,
	PREFLIGHT_GRANT, /* may the source impersonate the account? */
	PREFLIGHT_MINT,	 /* one token, now */
};

/*
 * Reads the body of POST /v1/sessions into a zeroed wish. On failure the message names the key, the value
 * and what would be right. session_wish_deinit() in either case.
 */
NODISCARD int session_wish_read(const char *body, size_t len, struct session_wish *wish,
				enum preflight *preflight, struct session_refusal *refusal);
void session_wish_deinit(struct session_wish *wish);

/* Reads {"peer":[…]} of PATCH. */
NODISCARD int session_peers_read(const char *body, size_t len, struct session_wish *wish,
				 struct session_refusal *refusal);

/* What the control API says of a session. The caller's reference. */
NODISCARD json_t *session_json(const struct session *session);
