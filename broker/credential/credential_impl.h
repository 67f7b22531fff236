/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a source kind is made of. For the files of this folder only: each kind embeds struct credential
 * as its first member and brings the operations; the cache, the waiters and the calls are common.
 */
#pragma once

#include "broker/base/compiler.h"
#include "broker/base/list.h"
#include "broker/base/strv.h"
#include "broker/credential/credential.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* A kind has exactly one of make and refresh. */
struct credential_ops {
	const char *type; /* what the status page calls it */
	bool offline;
	/* A new token for each call, made on the spot, for a service such as "iam" of the universe. */
	int (*make)(struct credential *credential, const char *service, struct secret **out,
		    struct failure *failure);
	/* Asks for a token; ends, later, with one credential_publish(). */
	void (*refresh)(struct credential *credential);
	/* Whether it impersonates that account, and then what is behind it; may be NULL. */
	bool (*behind)(struct credential *credential, const char *account,
		       struct credential_route *route);
	/* Ends a refresh under way without credential_publish(); frees all that is the kind's own. */
	void (*free)(struct credential *credential);
};

struct credential {
	const struct credential_ops *ops;
	struct http_client *client;
	struct timer_queue *timers;
	char *principal;	/* "" where the file does not say it */
	char *path;		/* of the file, else "" */
	struct secret *content; /* of the file; NULL without one */
	char *settings;		/* what else it depends on */
	char *repair; /* see credential_repair(); of what is behind another: not looked at */
	int64_t skew_s;

	struct secret *token; /* the cached one, or NULL */
	int64_t expires_boot_ms;
	int64_t expires_wall_ms;
	int64_t margin_ms;
	struct credential *outer; /* that this one is behind, or NULL */
	size_t calls;		  /* under way, and holds; also of those behind it */
	struct list waiters;	  /* those that wait for a refresh */
	bool refreshing;
	int64_t sent_boot_ms; /* when the refresh under way began */
	int64_t sent_wall_ms;
};

/* What a refresh brought. */
struct credential_refreshed {
	struct secret *token;	       /* borrowed; NULL where it failed */
	int64_t life_s;		       /* from its start; 0: not to be cached */
	const struct failure *failure; /* NULL where there is a token */
};

/* Sets the common part of a new kind up. */
void credential_init(struct credential *credential, const struct credential_ops *ops,
		     const struct credential_options *options);

/*
 * The end of a refresh: fills the cache and tells whoever waits. The credential may be gone afterwards;
 * the caller must not use it any more.
 */
void credential_publish(struct credential *credential,
			const struct credential_refreshed *refreshed);

/* A credential file that was read, while a kind is made of it. */
struct credential_file {
	const char *path;
	const char *prefix; /* of the field names in messages: "" or "source_credentials." */
	const json_t *root; /* an object, of the right universe, without foreign URLs */
	const struct credential_options *options;
};

/* Finds the file as the contract, section 6, says. */
NODISCARD int adc_open(const struct credential_options *options, struct credential **out,
		       struct err *err);
/* options->file */
NODISCARD int credential_file_open_option(const struct credential_options *options,
					  struct credential **out, struct err *err);
NODISCARD int credential_file_open(const char *path, const struct credential_options *options,
				   struct credential **out, struct err *err);
NODISCARD int gcloud_open(const struct credential_options *options, struct credential **out,
			  struct err *err);
NODISCARD int metadata_open(const struct credential_options *options, struct credential **out,
			    struct err *err);
NODISCARD int offline_open(const struct credential_options *options, struct credential **out,
			   struct err *err);

/* Where gcloud keeps Application Default Credentials; NULL where there is no such place. The caller's. */
char *adc_well_known_path(const struct credential_options *options);

/*
 * How that file is written anew by a login; `account` is what the login impersonates, or NULL. The
 * caller's string.
 */
char *credential_file_login(const struct credential_file *file, const char *account);

/* The credential that is an object in another one's file. It does not know path and content. */
NODISCARD int credential_file_open_nested(const struct credential_file *outer, const char *field,
					  struct credential **out, struct err *err);

/* The error that a field of the file is wrong; `fmt` says how, and what to do about it. Returns -1. */
int credential_file_refuse(const struct credential_file *file, struct err *err, const char *field,
			   const char *fmt, ...) PRINTF_LIKE(4, 5);

/*
 * A string of the file, borrowed, that must be there and not empty. The error names file and field, and
 * `repair` is what to do about it.
 */
NODISCARD int credential_file_string(const struct credential_file *file, const char *field,
				     const char *repair, const char **out, struct err *err);

NODISCARD int authorized_user_new(const struct credential_file *file, struct credential **out,
				  struct err *err);
NODISCARD int service_account_new(const struct credential_file *file, struct credential **out,
				  struct err *err);
NODISCARD int external_account_new(const struct credential_file *file, struct credential **out,
				   struct err *err);
NODISCARD int impersonated_new(const struct credential_file *file, struct credential **out,
			       struct err *err);

/* The account that the file's service_account_impersonation_url names. The caller's string. */
NODISCARD int impersonation_account(const struct credential_file *file, char **out,
				    struct err *err);

/* A credential of a service account that another credential may mint for. */
struct impersonation {
	const char *account;	  /* whose tokens are minted; an e-mail address */
	struct strv *delegates;	  /* in between, e-mail addresses; taken, and zeroed */
	int64_t lifetime_s;	  /* of its tokens */
	struct credential *inner; /* taken */
	bool external;		  /* part of an external_account file */
};

struct credential *impersonation_new(const struct impersonation *impersonation,
				     const struct credential_options *options);
