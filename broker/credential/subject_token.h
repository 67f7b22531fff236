/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the token comes from that an external account shows to the token service. One file a kind of
 * credential_source behind one table; read anew at every refresh, never kept.
 */
#pragma once

#include "broker/base/compiler.h"
#include "broker/google/failure.h"

#include <jansson.h>

struct credential_file;
struct err;
struct secret;
struct strv;
struct subject_source;

/* How the token stands in what was read. */
struct subject_format {
	char *field; /* of a JSON object; NULL: the text is the token */
};

/* Exactly one of token and failure is not NULL; both borrowed for the time of the callback. */
typedef void subject_done(void *ctx, struct secret *token, const struct failure *failure);

struct subject_source_ops {
	/* Reads; ends, later, with one subject_publish() or subject_publish_failure(). */
	void (*read)(struct subject_source *source);
	/* Ends a read under way without those; frees all that is the kind's own. */
	void (*free)(struct subject_source *source);
};

/* The common part: the first member of each kind. */
struct subject_source {
	const struct subject_source_ops *ops;
	struct subject_format format;
	subject_done *done; /* of the read under way */
	void *ctx;
};

/* The external account, as its source has to know it. */
struct subject_account {
	const char *audience;
	const char *subject_token_type;
	const char *impersonated; /* the account in between; NULL: none */
};

/* The source of the file's credential_source. Errors name the field and the repair. */
NODISCARD int subject_source_new(const struct credential_file *file,
				 const struct subject_account *account, struct subject_source **out,
				 struct err *err);
/* NULL is fine. A read under way ends without its callback. */
void subject_source_free(struct subject_source *source);

/* One read at a time. `done` is called once, never before this returns. */
void subject_source_read(struct subject_source *source, subject_done *done, void *ctx);

/* For the kinds. */

/*
 * A kind: made of the value of its field in credential_source; `source` is the file's view of that
 * object.
 */
typedef int subject_open(const struct credential_file *source,
			 const struct subject_account *account, struct subject_source **out,
			 struct err *err);
subject_open subject_file_open;
subject_open subject_url_open;
subject_open subject_executable_open;

/* The end of a read: the token in these bytes, by the source's format. */
void subject_publish(struct subject_source *source, const char *bytes, size_t len);
/* The same where the bytes are the token, with blanks around it that go. */
void subject_publish_text(struct subject_source *source, const char *bytes, size_t len);
void subject_publish_failure(struct subject_source *source, const struct failure *failure);
/* A failure in one word and a sentence. */
void subject_fail(struct subject_source *source, enum failure_class class, const char *reason,
		  const char *detail);
