/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Audit lines for refusals that do not grow with the refusals: the first for each (reason, peer) at
 * once, further ones at most once a second with a count.
 */
#pragma once

#include "broker/base/compiler.h"

struct audit;
struct refusal_log;
struct timer_queue;

/* Whose refusals they are. */
struct refusal_source {
	const char *event;   /* of the audit trail; NULL: request.refuse */
	const char *profile; /* NULL: of no profile */
	const char *session; /* NULL: a standing endpoint */
	const char *label;   /* NULL: none */
};

/* The source is copied; the audit is borrowed. */
NODISCARD struct refusal_log *refusal_log_new(struct timer_queue *timers, struct audit *audit,
					      const struct refusal_source *source);
/* Writes what is still counted. NULL is fine. */
void refusal_log_free(struct refusal_log *log);
/* Whose refusals those from now on are; what is still counted is written first. Copied. */
void refusal_log_set_profile(struct refusal_log *log, const char *profile);
void refusal_log_set_audit(struct refusal_log *log, struct audit *audit);

/* What was refused. All but `ref` are constants of closed sets. */
struct refusal {
	const char *reason;
	const char *route;
	unsigned status;
	const char *ref; /* of the mint behind it; NULL: none */
};

/* `peer` is an address as text. */
void refusal_log_note(struct refusal_log *log, const struct refusal *refusal, const char *peer);
