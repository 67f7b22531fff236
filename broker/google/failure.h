/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What went wrong with a call to Google, and what follows from it. Decided by HTTP status, OAuth2 error
 * and ErrorInfo.reason (AIP-193), never by a message's text.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_answer;

enum failure_class {
	FAILURE_TRANSIENT, /* may go away by itself: tried again after a backoff */
	FAILURE_PERMANENT, /* stays until somebody mends it */
};

/* What the sandbox may be told: the fixed list of the contract, section 4. */
enum failure_public {
	FAILURE_TEMPORARY,     /* credential temporarily unavailable */
	FAILURE_NOT_ALLOWED,   /* the broker may not use this account */
	FAILURE_NO_ACCOUNT,    /* account not available */
	FAILURE_LOGIN_EXPIRED, /* the host's login has expired */
};

/* At which step of a mint it happened. */
enum failure_step {
	FAILURE_STEP_SOURCE,	  /* the source's own access token, from the OAuth2 endpoint */
	FAILURE_STEP_MINT,	  /* generateAccessToken for the profile's account */
	FAILURE_STEP_SUBJECT,	  /* the subject token of an external account */
	FAILURE_STEP_EXCHANGE,	  /* its exchange at the token service (STS) */
	FAILURE_STEP_IMPERSONATE, /* generateAccessToken for the account that the source itself uses */
	FAILURE_STEP_METADATA,	  /* the host's own metadata server */
	FAILURE_STEP_GCLOUD,	  /* the host's gcloud */
};

#define FAILURE_DETAIL_SIZE 768

struct failure {
	enum failure_class class;
	enum failure_public public;
	enum failure_step step;
	long http_status;    /* 0 where there was no answer */
	char reason[64];     /* ErrorInfo.reason, OAuth2 error, or a word of ours; [A-Za-z0-9_.-] */
	char permission[96]; /* the permission that is missing, "" where it is none */
	char project[64];    /* that the call was billed to, "" where Google does not say it */
	char perimeter[96];  /* VPC Service Controls' id of this refusal, "" likewise */
	char service[64];    /* the API that is off, "" where Google does not say it */
	const char *hint;    /* of the table: what detail is made of; NULL: detail is final */
	char detail[FAILURE_DETAIL_SIZE]; /* for the operator's log; no upstream text, no secret */
	int64_t retry_after_s;		  /* what upstream asked for, 0..60 */
	int64_t date_s;		   /* Google's time with the answer; 0 where it did not say */
	bool source_token_refused; /* 401: the source's token must not be used again */
};

/* What the operator is told beside the answer. NULL or 0 where it is not known. */
struct failure_scene {
	const char *caller;  /* the e-mail address of who called */
	const char *account; /* that was called for */
	const char *repair;  /* how the source is renewed: an imperative with its command */
	int64_t wall_s;	     /* our time with the answer */
	int64_t issued_s;    /* of the token that was shown, as it says itself */
	int64_t expires_s;   /* likewise */
};

/* The words of the contract for a sandbox. */
const char *failure_public_text(enum failure_public public);
/* "source", "generateAccessToken" and so on: what the log calls it. */
const char *failure_step_name(enum failure_step step);
/* "transient" or "permanent". */
const char *failure_class_name(enum failure_class class);

/*
 * Fills failure from an answer that is not a usable success. `step` says whether the body of an error is
 * an OAuth2 envelope (source, exchange), AIP-193 (mint, impersonate) or nothing that is looked at.
 */
void failure_from_answer(struct failure *failure, enum failure_step step,
			 const struct http_answer *answer);

/* Makes detail anew with names, commands and the skew of the scene in it. Once: what is filled stays. */
void failure_fill(struct failure *failure, const struct failure_scene *scene);

/* That the source lacks the grant to mint, where that was asked for and not tried; to be filled. */
void failure_set_no_grant(struct failure *failure);

/*
 * A failure of our own: a word for `reason` (such as "bad_answer"), and what happened in `detail`. Its
 * public form is temporary where class is transient, else "the broker may not use this account".
 */
void failure_set(struct failure *failure, enum failure_step step, enum failure_class class,
		 const char *reason, const char *fmt, ...) PRINTF_LIKE(5, 6);
