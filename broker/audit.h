/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audit trail: one JSON object a line. Never a secret; a token is named by its fingerprint. No line
 * waits for a reader or a disk: what cannot be written at once is lost and counted.
 */
#pragma once

#include "broker/base/compiler.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct audit;
struct clock;
struct err;

/*
 * Opens the trail: a path (made for its owner alone, appended to), "stderr" or "off". With `required` a
 * lost line is an error to the caller of audit_write().
 */
NODISCARD int audit_open(const char *where, bool required, const struct clock *clock,
			 struct audit **out, struct err *err);
/* NULL is fine. */
void audit_free(struct audit *audit);

/* A new event with "time" and "event". The caller adds to it and hands it to audit_write(). */
NODISCARD json_t *audit_event(const struct audit *audit, const char *event);
/* Adds a string; NULL becomes null. */
void audit_add(json_t *event, const char *key, const char *value);
void audit_add_int(json_t *event, const char *key, int64_t value);

/* Writes and frees the event. -1 where the trail is required and the line was lost. */
int audit_write(struct audit *audit, json_t *takes_event);
