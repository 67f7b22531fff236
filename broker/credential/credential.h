/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who the broker is: a source credential of the bastion. One file a kind behind one table; the rest of
 * the broker sees this interface only.
 */
#pragma once

#include "broker/base/compiler.h"
#include "broker/google/failure.h"

#include <stdbool.h>
#include <stdint.h>

struct address;
struct clock;
struct credential;
struct credential_call;
struct err;
struct http_client;
struct loop;
struct secret;
struct strv;
struct timer_queue;

struct credential_options {
	const char *type;	   /* a name of the table: "adc", "file", "gcloud"… */
	const char *file;	   /* for "file" */
	const char *gcloud;	   /* the program, for "gcloud"; NULL: found in env_path */
	const char *metadata_host; /* HOST or HOST:PORT, for "metadata" */
	bool adc_metadata;	   /* "adc" ends at the metadata server */
	/* Where a credential file may send for its subject token, besides loopback with the last one. */
	const struct strv *subject_token_hosts;
	bool allow_http_loopback;
	/* Of the environment; NULL where unset. */
	const char *env_credentials_file; /* GOOGLE_APPLICATION_CREDENTIALS */
	const char *env_cloudsdk_config;  /* CLOUDSDK_CONFIG */
	const char *env_home;		  /* HOME */
	const char *env_path;		  /* PATH */
	const char *env_executables;	  /* GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES */
	const char *const *environment;	  /* all of it, for children; ended by NULL; kept */
	const char *universe_domain;
	/* Scheme, host and port. */
	const char *oauth2_endpoint;
	const char *sts_endpoint;
	const char *iamcredentials_endpoint;
	/* Whether one of our own endpoints is there: it is no metadata server to ask. May be NULL. */
	bool (*is_ours)(const void *ctx, const struct address *address);
	/* Whether one of them, on that port, takes requests by that name (HOST or HOST:PORT) in Host. */
	bool (*is_our_name)(const void *ctx, const char *name, uint16_t port);
	const void *is_ours_ctx;
	struct http_client *client;
	struct loop *loop;	    /* for children */
	struct timer_queue *timers; /* and its clock */
};

/* What the status page may say of it. */
struct credential_info {
	const char *type;	       /* "authorized_user", "gcloud", "offline"… */
	const char *principal;	       /* e-mail address where the file says it, else "" */
	const char *path;	       /* of the file, else "" */
	int64_t token_expires_wall_ms; /* of the cached access token; 0: none is held */
};

/* Exactly one of token and failure is not NULL; both borrowed for the time of the callback. */
typedef void credential_done(void *ctx, struct secret *token, const struct failure *failure);

/*
 * Finds and reads the source; Google is not asked. Errors name the file, the field and the repair. The
 * options' strings are copied as far as needed.
 */
NODISCARD int credential_open(const struct credential_options *options, struct credential **out,
			      struct err *err);
/* No call of others may be under way, nor of what is behind it. NULL is fine. */
void credential_free(struct credential *credential);

void credential_info(const struct credential *credential, struct credential_info *info);

/* True where both come from the same content and settings: what one holds is good for the other. */
bool credential_equal(const struct credential *a, const struct credential *b);

/* True while it is held, or a call is under way: of its own, or of what is behind it. */
bool credential_is_busy(const struct credential *credential);

/*
 * In use from now on, beyond its calls, until it is released: a mint lends its route (see
 * credential_route()) to a call of its own.
 */
void credential_hold(struct credential *credential);
void credential_release(struct credential *credential);

/*
 * How to renew it, for the operator: an imperative with the command for the store that it was read from.
 * Borrowed; NULL where there is no such thing.
 */
const char *credential_repair(const struct credential *credential);

/* True for tokens made on the spot that no API accepts: nothing is asked of Google then. */
bool credential_is_offline(const struct credential *credential);

/*
 * An access token of the source itself, good for calling generateAccessToken (for "offline": the token
 * to hand out). From the cache while its own expiry allows, with one refresh in flight however many ask.
 * `done` is called once, never before this returns.
 */
NODISCARD struct credential_call *credential_get_token(struct credential *credential,
						       credential_done *done, void *ctx);
/*
 * The same for calling IAM itself: what a source signs on its own names whom it is for, and nobody else
 * takes it.
 */
NODISCARD struct credential_call *credential_get_iam_token(struct credential *credential,
							   credential_done *done, void *ctx);
/* Ends it without the callback. NULL is fine. */
void credential_call_cancel(struct credential_call *call);

/* By which credential, and through which accounts, another one's tokens are minted. */
struct credential_route {
	struct credential *credential;
	const struct strv *delegates;
};

/*
 * The credential and the delegates as they are; or, where the credential impersonates just that account
 * and no delegates are named, what is behind it with those of its file, so that one call does it. All
 * borrowed, from the credential and the caller.
 */
struct credential_route credential_route(struct credential *credential, const char *account,
					 const struct strv *delegates);

/* A server refused the cached access token: the next call gets a new one. */
void credential_drop_token(struct credential *credential);

/* Our wall clock minus Google's, as last seen: assertions are corrected by it. */
void credential_set_skew(struct credential *credential, int64_t skew_s);
