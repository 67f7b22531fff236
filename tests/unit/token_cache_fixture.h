/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A token cache with a clock and mints that do what the test says, and beside it a ledger of what the
 * contract's section 5 makes of them. No start of a mint may break its rules, in any test.
 */
#pragma once

#include "broker/base/list.h"
#include "broker/base/strv.h"
#include "broker/base/timer.h"
#include "broker/token_cache.h"
#include "tests/unit/fake_clock.h"

#define MARGIN_S 300
#define MARGIN_MS INT64_C(300000)
#define LIFE_MS INT64_C(3601000)
/* The contract's 30 s, 300 ms, 2.5 s and 30 s. */
#define FLOOR_MS INT64_C(30000)
#define WAIT_WITH_OLD_MS INT64_C(300)
#define WAIT_MS INT64_C(2500)
#define PERMANENT_MS INT64_C(30000)
/* What a mint of the ready-made plans takes. */
#define MINT_MS INT64_C(100)

#define FIXTURE_ACCOUNT "agent-7@my-project.iam.gserviceaccount.com"
#define FIXTURE_SCOPE "https://www.googleapis.com/auth/cloud-platform"
#define SUBJECTS_MAX 16
#define KEY_TEXT_SIZE 320
#define TOKEN_TEXT_SIZE 48

enum mint_end {
	MINT_HANGS,
	MINT_SUCCEEDS,
	MINT_FAILS,
};

struct mint_plan {
	enum mint_end end;
	int64_t after_ms;
	int64_t life_ms;	  /* of what succeeds */
	enum failure_class class; /* of what fails */
	int64_t retry_after_s;
};

extern const struct mint_plan plan_hang;
extern const struct mint_plan plan_succeed;
extern const struct mint_plan plan_fail; /* transient */
extern const struct mint_plan plan_deny; /* permanent */

struct mint_start {
	int64_t at_ms;
	char ref[TOKEN_REF_SIZE];
	char key[KEY_TEXT_SIZE];
};

/* An entry and what is known of it. */
struct subject {
	struct fixture *fixture;
	struct token_entry *entry;
	char key[KEY_TEXT_SIZE];
	int64_t margin_s;

	size_t starts;
	bool in_flight;
	bool hasty;		  /* the last mint followed another within a second */
	char ref[TOKEN_REF_SIZE]; /* of the last mint */

	size_t minted;
	bool has_token;
	char token[TOKEN_TEXT_SIZE];
	int64_t arrived_ms;
	int64_t boot_deadline_ms;
	int64_t wall_deadline_ms;

	enum failure_class failure;
	char failure_ref[TOKEN_REF_SIZE];
	unsigned failures; /* transient, in a row */
	int64_t hold_until_ms;
};

enum jitter {
	JITTER_NONE,
	JITTER_HALF,
	JITTER_MOST,
};

struct fixture {
	struct fake_clock clock;
	struct timer_queue timers;
	struct token_cache *cache;
	enum jitter jitter;
	struct mint_plan plan; /* of mints that start from now on */
	struct list open;      /* mints, oldest first */
	size_t cancelled;
	struct mint_start *starts;
	size_t start_count;
	size_t start_capacity;
	struct subject subjects[SUBJECTS_MAX];
	size_t subject_count;
	bool clock_jumps; /* inside of callbacks: answers are not held against the time */
	/* Where a walk is, for the message of a failure. */
	unsigned seed;
	unsigned step;
};

/* With one subject of the default key. Mints succeed after MINT_MS with LIFE_MS. */
void fixture_init(struct fixture *fixture, enum jitter jitter);
void fixture_deinit(struct fixture *fixture);
/* Declare it after the clients, so that it goes before them: they may wait still. */
#define AUTO_FIXTURE CLEANUP(fixture_deinit)

/* The key of the first subject; borrowed from static memory. */
struct token_key fixture_key(void);
struct subject *fixture_add(struct fixture *fixture, const struct token_key *key, int64_t margin_s);

/* Fails the test where it does not hold, and says where a walk is. */
void fixture_must(const struct fixture *fixture, bool holds, const char *rule);

/* What the broker's clock says. */
int64_t fixture_now_ms(const struct fixture *fixture);
/* Time passes; each timer fires at its millisecond. */
void fixture_advance(struct fixture *fixture, int64_t ms);
/* The machine sleeps or stalls: timers fire after it. */
void fixture_suspend(struct fixture *fixture, int64_t ms);
void fixture_source_changed(struct fixture *fixture);
/* Ends the oldest mint under way now. */
void fixture_finish(struct fixture *fixture, const struct mint_plan *plan);
void fixture_finish_mint(struct mint *mint, const struct mint_plan *plan);

/* What is left of its token, 0 where there is none. */
int64_t subject_left_ms(const struct subject *subject);
static inline struct mint *mint_of(struct list *link)
{
	return (struct mint *)(void *)link;
}
