/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/credential/subject_token.h"

#include "broker/base/alloc.h"
#include "broker/base/err.h"
#include "broker/base/json.h"
#include "broker/base/log.h"
#include "broker/base/secret.h"
#include "broker/credential/credential_impl.h"

#include <string.h>

/* A signed assertion of SAML with its certificates has some 10 KiB. */
#define MAX_TOKEN_BYTES ((size_t)64 << 10)
#define BLANKS " \t\r\n"

#define CREATE                                                          \
	"write the file anew with: gcloud iam workload-identity-pools " \
	"create-cred-config"

static const struct {
	const char *field; /* of credential_source */
	const char *name;  /* where it is not supported: what it is called */
	subject_open *open;
} kinds[] = {
	{"file", NULL, subject_file_open},
	{"url", NULL, subject_url_open},
	{"executable", NULL, subject_executable_open},
	{"environment_id", "aws", NULL},
	{"certificate", "certificate (x509)", NULL},
};

/* An aws source has a "url" of its own; its environment_id says what it is. */
static bool is_aws(const json_t *source)
{
	return json_object_get(source, "environment_id") != NULL;
}

/* The kind of the source, or the number of kinds where it is none or several. */
static size_t find_kind(const json_t *source, size_t *count)
{
	size_t found = ARRAY_LEN(kinds);

	*count = 0;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (!json_object_get(source, kinds[i].field))
			continue;
		if (is_aws(source) && !strcmp(kinds[i].field, "url"))
			continue;
		found = i;
		++*count;
	}
	return *count == 1 ? found : ARRAY_LEN(kinds);
}

static int read_format(const struct credential_file *source, struct subject_format *format,
		       struct err *err)
{
	const json_t *const root = json_object_get(source->root, "format");
	const char *const type = root ? json_get_string(root, "type") : "text";
	const char *const field = json_get_string(root, "subject_token_field_name");
	struct quoted quoted;

	if (type && !strcmp(type, "text"))
		return 0;
	if (!type || strcmp(type, "json") != 0)
		return credential_file_refuse(source, err, "format.type",
					      "is %s, it must be text or json: " CREATE,
					      quote_str(&quoted, type));
	if (!field || !*field)
		return credential_file_refuse(
			source, err, "format.subject_token_field_name",
			"is missing, empty or no string, and format.type is json: " CREATE);
	format->field = xstrdup(field);
	return 0;
}

int subject_source_new(const struct credential_file *file, const struct subject_account *account,
		       struct subject_source **out, struct err *err)
{
	static const char field[] = "credential_source";
	const json_t *const root = json_object_get(file->root, field);
	AUTO_FREE char *prefix = xasprintf("%s%s.", file->prefix, field);
	const struct credential_file source = {
		.path = file->path,
		.prefix = prefix,
		.root = root,
		.options = file->options,
	};
	struct subject_format format = {0};
	size_t count;

	if (!json_is_object(root))
		return credential_file_refuse(file, err, field, "is missing or no object: " CREATE);
	const size_t kind = find_kind(root, &count);
	if (kind == ARRAY_LEN(kinds))
		return credential_file_refuse(
			file, err, field,
			"%s: it must have exactly one of file, url and executable: " CREATE,
			count ? "names several sources" : "names no source");
	if (!kinds[kind].open) {
		(void)credential_file_refuse(file, err, field,
					     "is of kind %s, which is not supported: use file, url "
					     "or executable",
					     kinds[kind].name);
		err->code = ERR_UNSUPPORTED;
		return -1;
	}
	if (read_format(&source, &format, err))
		return -1;
	if (kinds[kind].open(&source, account, out, err)) {
		free(format.field);
		return -1;
	}
	(*out)->format = format;
	return 0;
}

void subject_source_free(struct subject_source *source)
{
	if (!source)
		return;
	free(source->format.field);
	source->ops->free(source);
}

void subject_source_read(struct subject_source *source, subject_done *done, void *ctx)
{
	source->done = done;
	source->ctx = ctx;
	source->ops->read(source);
}

void subject_publish_failure(struct subject_source *source, const struct failure *failure)
{
	source->done(source->ctx, NULL, failure);
}

void subject_fail(struct subject_source *source, enum failure_class class, const char *reason,
		  const char *detail)
{
	struct failure failure;

	failure_set(&failure, FAILURE_STEP_SUBJECT, class, reason, "%s", detail);
	subject_publish_failure(source, &failure);
}

/* Without the blanks around it; NULL where that leaves nothing, too much, or what is no text. */
static struct secret *trimmed(const char *bytes, size_t len)
{
	while (len && strchr(BLANKS, bytes[0])) {
		bytes++;
		len--;
	}
	while (len && strchr(BLANKS, bytes[len - 1]))
		len--;
	if (!len || len > MAX_TOKEN_BYTES || memchr(bytes, '\0', len))
		return NULL;
	return secret_new(bytes, len);
}

void subject_publish_text(struct subject_source *source, const char *bytes, size_t len)
{
	AUTO_SECRET struct secret *token = trimmed(bytes, len);

	if (token)
		source->done(source->ctx, token, NULL);
	else
		subject_fail(source, FAILURE_TRANSIENT, "no_subject_token",
			     "what credential_source names holds no token: it is empty, or larger "
			     "than any; check what writes it");
}

void subject_publish(struct subject_source *source, const char *bytes, size_t len)
{
	if (!source->format.field) {
		subject_publish_text(source, bytes, len);
		return;
	}
	json_auto_t *root = json_read_object(bytes, len);
	const json_t *const value = json_object_get(root, source->format.field);
	if (json_is_string(value))
		subject_publish_text(source, json_string_value(value), json_string_length(value));
	else
		subject_fail(source, FAILURE_TRANSIENT, "no_subject_token",
			     "what credential_source names is no JSON object with a token in the "
			     "field of format.subject_token_field_name; check that, and what "
			     "writes it");
}
