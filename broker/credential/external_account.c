/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workload and workforce identity federation (AIP-4117): the token of another issuer is exchanged for
 * one of Google's, which may then be good for a service account's.
 */
#include "broker/credential/credential_impl.h"

#include "broker/base/alloc.h"
#include "broker/base/clock.h"
#include "broker/base/json.h"
#include "broker/base/log.h"
#include "broker/base/parse.h"
#include "broker/base/secret.h"
#include "broker/base/timer.h"
#include "broker/credential/subject_token.h"
#include "broker/google/jwt_times.h"
#include "broker/google/sts.h"

#include <string.h>

#define SCOPE "https://www.googleapis.com/auth/cloud-platform"
#define MAX_PROJECT_BYTES 63
#define MIN_LIFETIME_S 600
#define MAX_LIFETIME_S 43200
#define DEFAULT_LIFETIME_S 3600

#define CREATE                                                          \
	"write the file anew with: gcloud iam workload-identity-pools " \
	"create-cred-config"

struct external_account {
	struct credential base;
	char *endpoint;
	char *audience;
	char *subject_token_type;
	char *client_id; /* NULL: none */
	struct secret *client_secret;
	char *user_project; /* NULL: none */
	struct subject_source *subject;
	struct sts_call *call;	/* the exchange under way, or NULL */
	struct jwt_times times; /* of the subject token that was shown last */
};

static void exchanged(void *ctx, const struct sts_token *token, const struct failure *failure)
{
	struct external_account *const self = ctx;
	struct credential_refreshed result = {.failure = failure};
	struct failure told;

	self->call = NULL;
	if (token) {
		result.token = token->access_token;
		result.life_s = token->life_s;
	} else {
		told = *failure;
		failure_fill(&told,
			     &(struct failure_scene){
				     .repair = credential_repair(&self->base),
				     .wall_s = clock_wall_ms(self->base.timers->clock) / 1000,
				     .issued_s = self->times.issued_s,
				     .expires_s = self->times.expires_s,
			     });
		result.failure = &told;
	}
	credential_publish(&self->base, &result);
}

static void on_subject(void *ctx, struct secret *subject_token, const struct failure *failure)
{
	struct external_account *const self = ctx;

	if (failure) {
		const struct credential_refreshed result = {.failure = failure};
		credential_publish(&self->base, &result);
		return;
	}
	self->times = jwt_read_times(secret_bytes(subject_token));
	const struct sts_exchange exchange = {
		.endpoint = self->endpoint,
		.audience = self->audience,
		.scope = SCOPE,
		.subject_token_type = self->subject_token_type,
		.subject_token = subject_token,
		.client_id = self->client_id,
		.client_secret = self->client_secret,
		/* With a client of its own the project is the client's. */
		.user_project = self->client_id ? NULL : self->user_project,
	};
	self->call = sts_exchange_start(self->base.client, &exchange, exchanged, self);
}

static void external_account_refresh(struct credential *credential)
{
	struct external_account *const self =
		CONTAINER_OF(credential, struct external_account, base);

	subject_source_read(self->subject, on_subject, self);
}

static void external_account_free(struct credential *credential)
{
	struct external_account *const self =
		CONTAINER_OF(credential, struct external_account, base);

	subject_source_free(self->subject);
	sts_call_cancel(self->call);
	free(self->endpoint);
	free(self->audience);
	free(self->subject_token_type);
	free(self->client_id);
	secret_unref(self->client_secret);
	free(self->user_project);
	free(self);
}

static const struct credential_ops external_account_ops = {
	.type = "external_account",
	.refresh = external_account_refresh,
	.free = external_account_free,
};

/* What the file says, borrowed from it. */
struct external_fields {
	const char *audience;
	const char *subject_token_type;
	const char *token_url; /* checked already; the configured endpoint is called */
	const char *client_id; /* NULL: none */
	const char *client_secret;
	const char *user_project; /* NULL: none */
};

/* A client needs both, and is not needed at all. */
static int read_client(const struct credential_file *file, struct external_fields *fields,
		       struct err *err)
{
	if (!json_object_get(file->root, "client_id") &&
	    !json_object_get(file->root, "client_secret"))
		return 0;
	if (credential_file_string(file, "client_id", CREATE, &fields->client_id, err))
		return -1;
	return credential_file_string(file, "client_secret", CREATE, &fields->client_secret, err);
}

/* //iam.googleapis.com/locations/LOCATION/workforcePools/POOL/… */
static bool is_workforce(const char *audience)
{
	const char *const locations = strstr(audience, "/locations/");

	return !strncmp(audience, "//iam.", strlen("//iam.")) && locations &&
	       strstr(locations, "/workforcePools/") && !strstr(audience, "/projects/");
}

static int read_user_project(const struct credential_file *file, struct external_fields *fields,
			     struct err *err)
{
	static const char field[] = "workforce_pool_user_project";
	const char *const project = json_get_string(file->root, field);
	struct quoted quoted;

	if (!json_object_get(file->root, field))
		return 0;
	if (!project || strlen(project) > MAX_PROJECT_BYTES || !text_is_of(project, ".:-"))
		return credential_file_refuse(file, err, field, "is %s, which is no project's id",
					      quote_str(&quoted, project));
	if (!is_workforce(fields->audience))
		return credential_file_refuse(
			file, err, field,
			"goes with the audience of a workforce pool only: remove it");
	fields->user_project = project;
	return 0;
}

static int read_fields(const struct credential_file *file, struct external_fields *fields,
		       struct err *err)
{
	if (credential_file_string(file, "audience", CREATE, &fields->audience, err) ||
	    credential_file_string(file, "subject_token_type", CREATE, &fields->subject_token_type,
				   err) ||
	    credential_file_string(file, "token_url", CREATE, &fields->token_url, err) ||
	    read_client(file, fields, err))
		return -1;
	return read_user_project(file, fields, err);
}

static int read_lifetime(const struct credential_file *file, int64_t *out_s, struct err *err)
{
	static const char field[] = "service_account_impersonation";
	const json_t *const settings = json_object_get(file->root, field);
	const json_t *const value = json_object_get(settings, "token_lifetime_seconds");

	*out_s = DEFAULT_LIFETIME_S;
	if (!value)
		return 0;
	*out_s = json_integer_value(value);
	if (*out_s >= MIN_LIFETIME_S && *out_s <= MAX_LIFETIME_S)
		return 0;
	return credential_file_refuse(file, err,
				      "service_account_impersonation.token_lifetime_seconds",
				      "must be a number from %d to %d", MIN_LIFETIME_S,
				      MAX_LIFETIME_S);
}

static struct credential *exchange_new(const struct credential_file *file,
				       const struct external_fields *fields,
				       struct subject_source *takes_subject)
{
	struct external_account *const self = xcalloc(1, sizeof(*self));

	credential_init(&self->base, &external_account_ops, file->options);
	self->base.principal = xstrdup("");
	self->endpoint = xstrdup(file->options->sts_endpoint);
	self->audience = xstrdup(fields->audience);
	self->subject_token_type = xstrdup(fields->subject_token_type);
	if (fields->client_id) {
		self->client_id = xstrdup(fields->client_id);
		self->client_secret =
			secret_new(fields->client_secret, strlen(fields->client_secret));
	}
	self->user_project = fields->user_project ? xstrdup(fields->user_project) : NULL;
	self->subject = takes_subject;
	return &self->base;
}

int external_account_new(const struct credential_file *file, struct credential **out,
			 struct err *err)
{
	const bool impersonates = json_object_get(file->root, "service_account_impersonation_url");
	AUTO_FREE char *account = NULL;
	struct external_fields fields = {0};
	struct subject_source *subject;
	struct strv no_delegates = {0};
	int64_t lifetime_s;

	if (read_fields(file, &fields, err) || read_lifetime(file, &lifetime_s, err) ||
	    (impersonates && impersonation_account(file, &account, err)))
		return -1;
	const struct subject_account about = {
		.audience = fields.audience,
		.subject_token_type = fields.subject_token_type,
		.impersonated = account,
	};
	if (subject_source_new(file, &about, &subject, err))
		return -1;
	struct credential *const exchange = exchange_new(file, &fields, subject);
	const struct impersonation impersonation = {
		.account = account,
		.delegates = &no_delegates,
		.lifetime_s = lifetime_s,
		.inner = exchange,
		.external = true,
	};
	*out = impersonates ? impersonation_new(&impersonation, file->options) : exchange;
	(*out)->repair = xstrdup(CREATE);
	return 0;
}
