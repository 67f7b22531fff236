/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a credential file, checks what all types have in common, and finds the type's own reader. */
#include "broker/credential/credential_impl.h"

#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/base/err.h"
#include "broker/base/file.h"
#include "broker/base/json.h"
#include "broker/base/log.h"
#include "broker/base/secret.h"
#include "broker/credential/google_url.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define MAX_FILE_BYTES ((size_t)64 << 10)

#define WRITE_ANEW \
	"copy it again whole, or write it anew with: gcloud auth application-default login"
#define SUPPORTED                                                               \
	"supported are authorized_user, service_account, external_account and " \
	"impersonated_service_account"
#define NESTABLE "supported there are authorized_user, service_account and external_account"

struct file_type {
	const char *name;
	bool holds_secret;
	bool nestable; /* may stand within another credential */
	/* NULL: known, but not supported */
	int (*open)(const struct credential_file *file, struct credential **out, struct err *err);
};

static const struct file_type types[] = {
	{"authorized_user", true, true, authorized_user_new},
	{"service_account", true, true, service_account_new},
	{"external_account", false, true, external_account_new},
	{"impersonated_service_account", true, false, impersonated_new},
	{"external_account_authorized_user", true, false, NULL},
	{"gdch_service_account", true, false, NULL},
};

static const char *repair_of_unread(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return errno == ENOENT || errno == ENOTDIR ?
			       "name a file that is there, or write one with: "
			       "gcloud auth application-default login" :
			       "let the broker's user reach it";
	if (!S_ISREG(st.st_mode))
		return "name a credential file";
	if (st.st_size > (off_t)MAX_FILE_BYTES)
		return "this is no credential file, name another one";
	return "let the broker's user read it, as with chgrp postern and chmod 0640";
}

static int read_content(const char *path, struct buf *content, struct stat *st, struct err *err)
{
	if (file_read(path, content, st, err)) {
		const struct err why = *err;
		return err_set(err, why.code, "%s: %s", why.text, repair_of_unread(path));
	}
	if (!content->len || strspn(content->data, " \t\r\n") == content->len)
		return err_set(err, ERR_INVALID, "%s: the file is empty: " WRITE_ANEW, path);
	return 0;
}

/* In our words: jansson's text quotes what stands near the fault, which may be a secret. */
static const char *json_fault(const json_error_t *error)
{
	switch (json_error_code(error)) {
	case json_error_premature_end_of_input:
		return "the file is cut off";
	case json_error_duplicate_key:
		return "a field is there twice";
	case json_error_invalid_utf8:
		return "this is not UTF-8";
	default:
		return "this is not JSON";
	}
}

static int parse(const char *path, const struct buf *content, json_t **out, struct err *err)
{
	json_error_t error;

	json_auto_t *root = json_loadb(content->data, content->len, JSON_REJECT_DUPLICATES, &error);
	if (!root)
		return err_set(err, ERR_INVALID, "%s:%d:%d: %s: " WRITE_ANEW, path, error.line,
			       error.column, json_fault(&error));
	if (!json_is_object(root))
		return err_set(err, ERR_INVALID, "%s: not a JSON object: " WRITE_ANEW, path);
	*out = TAKE(root);
	return 0;
}

static int no_type(const struct credential_file *file, struct err *err)
{
	static const char *const client_kinds[] = {"installed", "web"};

	for (size_t i = 0; i < ARRAY_LEN(client_kinds); i++)
		if (json_is_object(json_object_get(file->root, client_kinds[i])))
			return err_set(
				err, ERR_INVALID,
				"%s: field \"%s\": this is an OAuth client, not a credential: "
				"use the file that is written by: gcloud auth "
				"application-default login --client-id-file=%s",
				file->path, client_kinds[i], file->path);
	return err_set(err, ERR_INVALID,
		       "%s: field \"type\" is missing or no string: " SUPPORTED "; " WRITE_ANEW,
		       file->path);
}

static int find_type(const struct credential_file *file, const struct file_type **out,
		     struct err *err)
{
	const char *const name = json_string_value(json_object_get(file->root, "type"));
	struct quoted quoted;

	if (!name)
		return no_type(file, err);
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		if (strcmp(types[i].name, name) != 0)
			continue;
		if (!types[i].open)
			return err_set(err, ERR_UNSUPPORTED,
				       "%s: field \"type\": %s is not supported: " SUPPORTED,
				       file->path, name);
		*out = &types[i];
		return 0;
	}
	return err_set(err, ERR_UNSUPPORTED, "%s: field \"type\": %s is not known: " SUPPORTED,
		       file->path, quote_str(&quoted, name));
}

/*
 * Whoever may write the file decides who the broker is; whoever may read it can be the broker. The group
 * may read: that is how a service gets at it.
 */
static int check_mode(const char *path, mode_t mode, bool holds_secret, struct err *err)
{
	const bool writable = mode & (S_IWGRP | S_IWOTH);
	const bool readable = holds_secret && mode & S_IROTH;

	if (writable)
		return err_set(err, ERR_INVALID,
			       "%s: others than its owner may write to it: chmod %s %s", path,
			       readable ? "go-w,o-r" : "go-w", path);
	if (readable)
		return err_set(err, ERR_INVALID,
			       "%s: it holds a secret and everybody may read it: chmod o-r %s",
			       path, path);
	return 0;
}

/*
 * A file without the field is of Google's own universe, as every client library reads it; what is within
 * another credential, of that one's.
 */
static int check_universe(const struct credential_file *file, struct err *err)
{
	const char *const configured = file->options->universe_domain;
	const json_t *const field = json_object_get(file->root, "universe_domain");
	const char *const fallback = *file->prefix ? configured : "googleapis.com";
	const char *const universe = field ? json_string_value(field) : fallback;
	struct quoted quoted;

	if (universe && !strcasecmp(universe, configured))
		return 0;
	return credential_file_refuse(
		file, err, "universe_domain",
		"is %s, not the configured %s: use a file of that universe, or set "
		"universe_domain under [endpoints]",
		quote_str(&quoted, universe), configured);
}

static int check_urls(const struct credential_file *file, struct err *err)
{
	const struct credential_options *const options = file->options;
	/* Fields that tell a client where to send secrets, and where they are sent instead. */
	const struct {
		const char *name;
		const char *endpoint;
	} fields[] = {
		{"token_uri", options->oauth2_endpoint},
		{"token_url", options->sts_endpoint},
		{"token_info_url", options->sts_endpoint},
		{"service_account_impersonation_url", options->iamcredentials_endpoint},
	};
	struct quoted quoted;

	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		const json_t *const field = json_object_get(file->root, fields[i].name);
		const char *const url = json_string_value(field);
		if (!field)
			continue;
		if (url && google_url_is_trusted(url, options->universe_domain, fields[i].endpoint))
			continue;
		return credential_file_refuse(
			file, err, fields[i].name,
			"is %s, which is not https on a host of %s: get the file again from where "
			"it was issued, and do not edit it",
			quote_str(&quoted, url), options->universe_domain);
	}
	return 0;
}

static bool holds_secret(const struct file_type *type, const json_t *root)
{
	return type->holds_secret || json_object_get(root, "client_secret") ||
	       json_object_get(json_object_get(root, "credential_source"), "headers");
}

int credential_file_open(const char *path, const struct credential_options *options,
			 struct credential **out, struct err *err)
{
	AUTO_BUF struct buf content;
	json_auto_t *root = NULL;
	const struct file_type *type = NULL;
	struct stat st;

	buf_init_sensitive(&content, MAX_FILE_BYTES);
	if (read_content(path, &content, &st, err) || parse(path, &content, &root, err))
		return -1;
	const struct credential_file file = {
		.path = path,
		.prefix = "",
		.root = root,
		.options = options,
	};
	if (find_type(&file, &type, err) ||
	    check_mode(path, st.st_mode, holds_secret(type, root), err) ||
	    check_universe(&file, err) || check_urls(&file, err) || type->open(&file, out, err))
		return -1;
	(*out)->path = xstrdup(path);
	(*out)->content = secret_take_buf(&content);
	return 0;
}

int credential_file_open_option(const struct credential_options *options, struct credential **out,
				struct err *err)
{
	if (!options->file || !*options->file)
		return err_set(err, ERR_USAGE,
			       "source type file needs a file: set file under [source]");
	return credential_file_open(options->file, options, out, err);
}

int credential_file_open_nested(const struct credential_file *outer, const char *field,
				struct credential **out, struct err *err)
{
	const json_t *const root = json_object_get(outer->root, field);
	const char *const name = json_get_string(root, "type");
	AUTO_FREE char *prefix = xasprintf("%s%s.", outer->prefix, field);
	const struct credential_file file = {
		.path = outer->path,
		.prefix = prefix,
		.root = root,
		.options = outer->options,
	};
	struct quoted quoted;
	size_t i = 0;

	if (!json_is_object(root))
		return credential_file_refuse(outer, err, field,
					      "is missing or no object: " WRITE_ANEW);
	while (i < ARRAY_LEN(types) && (!name || strcmp(types[i].name, name) != 0))
		i++;
	if (i == ARRAY_LEN(types) || !types[i].nestable)
		return credential_file_refuse(&file, err, "type",
					      "is %s, which cannot stand there: " NESTABLE,
					      quote_str(&quoted, name));
	if (check_universe(&file, err) || check_urls(&file, err))
		return -1;
	return types[i].open(&file, out, err);
}

int credential_file_refuse(const struct credential_file *file, struct err *err, const char *field,
			   const char *fmt, ...)
{
	struct err how = {0};
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(how.text, sizeof(how.text), fmt, ap);
	va_end(ap);
	return err_set(err, ERR_INVALID, "%s: field \"%s%s\" %s", file->path, file->prefix, field,
		       how.text);
}

int credential_file_string(const struct credential_file *file, const char *field,
			   const char *repair, const char **out, struct err *err)
{
	const char *const value = json_string_value(json_object_get(file->root, field));

	if (!value || !*value)
		return credential_file_refuse(file, err, field,
					      "is missing, empty or no string: %s", repair);
	*out = value;
	return 0;
}
