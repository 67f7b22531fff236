/* SPDX-License-Identifier: Apache-2.0 */
/* A subject token from a server that the operator has allowed by name. */
#include "broker/credential/subject_token.h"

#include "broker/base/alloc.h"
#include "broker/base/log.h"
#include "broker/base/parse.h"
#include "broker/base/secret.h"
#include "broker/credential/credential_impl.h"
#include "broker/credential/google_url.h"
#include "broker/net/http_client.h"

#include <string.h>

#define MAX_HEADERS 16
/* tchar of RFC 9110 section 5.6.2, besides letters and digits. */
#define TOKEN_OTHERS "!#$%&'*+-.^_`|~"

struct subject_url {
	struct subject_source base;
	struct http_client *client;
	struct http_call *call;
	char *url;
	struct secret *headers[MAX_HEADERS]; /* the values, which may be secrets */
	char *names[MAX_HEADERS];
	size_t header_count;
};

static void answered(void *ctx, const struct http_answer *answer)
{
	struct subject_url *const self = ctx;
	struct failure failure;

	self->call = NULL;
	if (answer->failure == HTTP_FAILURE_NONE && answer->status == 200) {
		subject_publish(&self->base, answer->body, answer->body_len);
		return;
	}
	failure_from_answer(&failure, FAILURE_STEP_SUBJECT, answer);
	subject_publish_failure(&self->base, &failure);
}

static void subject_url_read(struct subject_source *source)
{
	struct subject_url *const self = CONTAINER_OF(source, struct subject_url, base);
	struct http_field fields[MAX_HEADERS];

	for (size_t i = 0; i < self->header_count; i++)
		fields[i] = (struct http_field){self->names[i], secret_bytes(self->headers[i])};
	const struct http_client_request request = {
		.method = "GET",
		.url = self->url,
		.fields = fields,
		.field_count = self->header_count,
	};
	self->call = http_client_start(self->client, &request, answered, self);
}

static void subject_url_free(struct subject_source *source)
{
	struct subject_url *const self = CONTAINER_OF(source, struct subject_url, base);

	http_call_cancel(self->call);
	free(self->url);
	for (size_t i = 0; i < self->header_count; i++) {
		free(self->names[i]);
		secret_unref(self->headers[i]);
	}
	free(self);
}

static const struct subject_source_ops subject_url_ops = {
	.read = subject_url_read,
	.free = subject_url_free,
};

static bool is_field_value(const char *value)
{
	for (; *value; value++)
		if ((unsigned char)*value < ' ' || *value == 0x7f)
			return false;
	return true;
}

static int check_headers(const struct credential_file *source, const json_t *headers,
			 struct err *err)
{
	struct quoted quoted;
	const char *name;
	json_t *value;

	if (!headers)
		return 0;
	if (!json_is_object(headers) || json_object_size(headers) > MAX_HEADERS)
		return credential_file_refuse(source, err, "headers",
					      "must be an object of at most %d strings",
					      MAX_HEADERS);
	json_object_foreach((json_t *)headers, name, value) {
		if (!text_is_of(name, TOKEN_OTHERS) || !json_is_string(value) ||
		    !is_field_value(json_string_value(value)))
			return credential_file_refuse(
				source, err, "headers",
				"holds %s, which is no header with a string of one line as its value",
				quote_str(&quoted, name));
	}
	return 0;
}

int subject_url_open(const struct credential_file *source, const struct subject_account *account,
		     struct subject_source **out, struct err *err)
{
	const struct credential_options *const options = source->options;
	json_t *const headers = json_object_get(source->root, "headers");
	struct quoted quoted;
	const char *url;
	const char *name;
	json_t *value;

	(void)account;
	if (credential_file_string(source, "url", "name the URL of the token", &url, err) ||
	    check_headers(source, headers, err))
		return -1;
	if (!subject_url_is_allowed(url, options->subject_token_hosts,
				    options->allow_http_loopback))
		return credential_file_refuse(
			source, err, "url",
			"is %s, which is not https on an allowed host: if it is where the token "
			"comes from, add its host to subject_token_hosts under [source]",
			quote_str(&quoted, url));
	struct subject_url *const self = xcalloc(1, sizeof(*self));
	self->base.ops = &subject_url_ops;
	self->client = options->client;
	self->url = xstrdup(url);
	json_object_foreach(headers, name, value) {
		self->names[self->header_count] = xstrdup(name);
		self->headers[self->header_count++] =
			secret_new(json_string_value(value), json_string_length(value));
	}
	*out = &self->base;
	return 0;
}
