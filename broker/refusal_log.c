/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/refusal_log.h"

#include "broker/audit.h"
#include "broker/base/alloc.h"
#include "broker/base/clock.h"
#include "broker/base/timer.h"
#include "broker/net/address.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define QUIET_MS 1000
/* So many pairs are told apart; a new one takes the place of the oldest. */
#define MAX_PAIRS 64

struct pair {
	const char *reason; /* NULL: free */
	const char *route;
	unsigned status;
	char ref[16];
	char peer[ADDRESS_TEXT_SIZE];
	uint64_t count; /* since the last line */
	int64_t written_ms;
};

struct refusal_log {
	struct timer_queue *timers;
	struct timer timer;
	struct audit *audit;
	const char *event;
	char *profile;
	char *session;
	char *label;
	struct pair *pairs; /* MAX_PAIRS of them; NULL before the first refusal */
};

struct refusal_log *refusal_log_new(struct timer_queue *timers, struct audit *audit,
				    const struct refusal_source *source)
{
	struct refusal_log *const log = xcalloc(1, sizeof(*log));

	log->timers = timers;
	log->audit = audit;
	log->event = source->event ? source->event : "request.refuse";
	log->profile = source->profile ? xstrdup(source->profile) : NULL;
	log->session = source->session ? xstrdup(source->session) : NULL;
	log->label = source->label ? xstrdup(source->label) : NULL;
	return log;
}

void refusal_log_set_audit(struct refusal_log *log, struct audit *audit)
{
	log->audit = audit;
}

static void write_line(struct refusal_log *log, struct pair *pair)
{
	json_t *const event = audit_event(log->audit, log->event);

	audit_add(event, "session", log->session);
	audit_add(event, "profile", log->profile);
	audit_add(event, "label", log->label);
	audit_add(event, "peer", pair->peer);
	audit_add(event, "ref", pair->ref[0] ? pair->ref : NULL);
	audit_add(event, "reason", pair->reason);
	audit_add(event, "route", pair->route);
	audit_add_int(event, "status", pair->status);
	audit_add_int(event, "count", (int64_t)pair->count);
	(void)audit_write(log->audit, event);
	pair->count = 0;
	pair->written_ms = clock_boot_ms(log->timers->clock);
}

static void flush(struct refusal_log *log)
{
	for (size_t i = 0; log->pairs && i < MAX_PAIRS; i++)
		if (log->pairs[i].reason && log->pairs[i].count)
			write_line(log, &log->pairs[i]);
}

/* Each reason and peer is new to another profile. */
void refusal_log_set_profile(struct refusal_log *log, const char *profile)
{
	if (log->profile && !strcmp(log->profile, profile))
		return;
	flush(log);
	free(log->profile);
	log->profile = xstrdup(profile);
	free(log->pairs);
	log->pairs = NULL;
}

void refusal_log_free(struct refusal_log *log)
{
	if (!log)
		return;
	flush(log);
	timer_stop(log->timers, &log->timer);
	free(log->profile);
	free(log->session);
	free(log->label);
	free(log->pairs);
	free(log);
}

static void on_quiet_over(struct timer *timer)
{
	flush(CONTAINER_OF(timer, struct refusal_log, timer));
}

/* The pair's place, or the one that has to make room. */
static struct pair *find(struct refusal_log *log, const char *reason, const char *peer)
{
	struct pair *oldest = &log->pairs[0];

	for (size_t i = 0; i < MAX_PAIRS; i++) {
		struct pair *const pair = &log->pairs[i];
		if (!pair->reason)
			return pair;
		if (!strcmp(pair->reason, reason) && !strcmp(pair->peer, peer))
			return pair;
		if (pair->written_ms < oldest->written_ms)
			oldest = pair;
	}
	if (oldest->count)
		write_line(log, oldest);
	oldest->reason = NULL;
	return oldest;
}

void refusal_log_note(struct refusal_log *log, const struct refusal *refusal, const char *peer)
{
	if (!log->pairs)
		log->pairs = xcalloc(MAX_PAIRS, sizeof(*log->pairs));
	struct pair *const pair = find(log, refusal->reason, peer);
	const bool first = !pair->reason;

	if (first) {
		*pair = (struct pair){.reason = refusal->reason};
		(void)snprintf(pair->peer, sizeof(pair->peer), "%s", peer);
	}
	pair->route = refusal->route;
	pair->status = refusal->status;
	(void)snprintf(pair->ref, sizeof(pair->ref), "%s", refusal->ref ? refusal->ref : "");
	pair->count++;
	if (first || clock_boot_ms(log->timers->clock) - pair->written_ms >= QUIET_MS)
		write_line(log, pair);
	else if (!timer_is_set(&log->timer))
		timer_set_after(log->timers, &log->timer, QUIET_MS, on_quiet_over);
}
