/* SPDX-License-Identifier: Apache-2.0 */
/* A person's login, as `gcloud auth application-default login` leaves it: the refresh grant. */
#include "broker/credential/credential_impl.h"

#include "broker/base/alloc.h"
#include "broker/base/json.h"
#include "broker/base/parse.h"
#include "broker/base/secret.h"
#include "broker/base/timer.h"
#include "broker/google/oauth2.h"

#include <string.h>

#define LOG_IN "log in again with: gcloud auth application-default login"

struct authorized_user {
	struct credential base;
	char *endpoint;
	char *client_id;
	struct secret *client_secret;
	struct secret *refresh_token; /* the file's, or one that Google gave us since */
	struct oauth2_call *call;     /* the refresh under way, or NULL */
};

static void refreshed(void *ctx, const struct oauth2_token *token, const struct failure *failure)
{
	struct authorized_user *const self = ctx;
	struct credential_refreshed result = {.failure = failure};

	self->call = NULL;
	if (token) {
		result.token = token->access_token;
		result.life_s = token->life_s;
	}
	/* Kept in memory only: the file is its owner's, and gcloud's. */
	if (token && token->refresh_token) {
		secret_unref(self->refresh_token);
		self->refresh_token = secret_ref(token->refresh_token);
	}
	credential_publish(&self->base, &result);
}

static void authorized_user_refresh(struct credential *credential)
{
	struct authorized_user *const self = CONTAINER_OF(credential, struct authorized_user, base);
	const struct oauth2_refresh refresh = {
		.endpoint = self->endpoint,
		.client_id = self->client_id,
		.client_secret = self->client_secret,
		.refresh_token = self->refresh_token,
	};

	self->call = oauth2_refresh_start(credential->client, credential->timers->clock, &refresh,
					  refreshed, self);
}

static void authorized_user_free(struct credential *credential)
{
	struct authorized_user *const self = CONTAINER_OF(credential, struct authorized_user, base);

	oauth2_call_cancel(self->call);
	free(self->endpoint);
	free(self->client_id);
	secret_unref(self->client_secret);
	secret_unref(self->refresh_token);
	free(self);
}

static const struct credential_ops authorized_user_ops = {
	.type = "authorized_user",
	.refresh = authorized_user_refresh,
	.free = authorized_user_free,
};

int authorized_user_new(const struct credential_file *file, struct credential **out,
			struct err *err)
{
	const char *client_id;
	const char *client_secret;
	const char *refresh_token;

	if (credential_file_string(file, "client_id", LOG_IN, &client_id, err) ||
	    credential_file_string(file, "client_secret", LOG_IN, &client_secret, err) ||
	    credential_file_string(file, "refresh_token", LOG_IN, &refresh_token, err))
		return -1;
	/* gcloud often leaves it empty. */
	const char *const account = json_get_string(file->root, "account");

	struct authorized_user *const self = xcalloc(1, sizeof(*self));
	credential_init(&self->base, &authorized_user_ops, file->options);
	self->base.principal = xstrdup(account && text_is_email(account) ? account : "");
	self->base.repair = credential_file_login(file, NULL);
	self->endpoint = xstrdup(file->options->oauth2_endpoint);
	self->client_id = xstrdup(client_id);
	self->client_secret = secret_new(client_secret, strlen(client_secret));
	self->refresh_token = secret_new(refresh_token, strlen(refresh_token));
	*out = &self->base;
	return 0;
}
