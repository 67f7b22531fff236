/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A service account that the source itself impersonates: another credential mints its tokens, by one
 * generateAccessToken, and those are the source's access tokens.
 */
#include "broker/credential/credential_impl.h"

#include "broker/base/alloc.h"
#include "broker/base/clock.h"
#include "broker/base/secret.h"
#include "broker/base/timer.h"
#include "broker/google/iam_credentials.h"

#include <string.h>

/* All that such a token is for; narrower than what the account may do elsewhere. */
#define SCOPE "https://www.googleapis.com/auth/iam"

struct impersonated {
	struct credential base; /* its principal is the account */
	struct credential *inner;
	struct credential_call *inner_call; /* one of these while a refresh is under way */
	struct iam_call *iam_call;
	char *endpoint;
	struct strv scopes;
	struct strv delegates;
	int64_t lifetime_s;
	unsigned refusals; /* of the inner token, in a row */
};

static void publish_failure(struct impersonated *self, const struct failure *failure)
{
	const struct credential_refreshed result = {.failure = failure};

	credential_publish(&self->base, &result);
}

/* As with the mint itself: a cached token may be refused by accident, two in a row are no accident. */
static void judge_refusal(struct impersonated *self, struct failure *failure)
{
	credential_drop_token(self->inner);
	failure->source_token_refused = false;
	if (++self->refusals < 2)
		return;
	failure->class = FAILURE_PERMANENT;
	failure->public = FAILURE_LOGIN_EXPIRED;
}

static void on_token(void *ctx, const struct iam_token *token, const struct failure *failure)
{
	struct impersonated *const self = ctx;

	self->iam_call = NULL;
	if (token) {
		/* Counted from the start of the refresh, so that it ends a little early. */
		const struct credential_refreshed result = {.token = token->token,
							    .life_s = token->life_ms / 1000};
		self->refusals = 0;
		credential_publish(&self->base, &result);
		return;
	}
	struct failure own = *failure;
	if (own.source_token_refused)
		judge_refusal(self, &own);
	else
		self->refusals = 0;
	failure_fill(&own, &(struct failure_scene){
				   .caller = self->inner->principal,
				   .account = self->base.principal,
				   .repair = credential_repair(&self->base),
				   .wall_s = clock_wall_ms(self->base.timers->clock) / 1000,
			   });
	publish_failure(self, &own);
}

static void on_inner(void *ctx, struct secret *token, const struct failure *failure)
{
	struct impersonated *const self = ctx;

	self->inner_call = NULL;
	if (failure) {
		publish_failure(self, failure);
		return;
	}
	const struct iam_token_request request = {
		.endpoint = self->endpoint,
		.service_account = self->base.principal,
		.scopes = &self->scopes,
		.delegates = &self->delegates,
		.lifetime_s = self->lifetime_s,
		.source_token = token,
		.of_source = true,
	};
	self->iam_call = iam_generate_access_token(self->base.client, self->base.timers->clock,
						   &request, on_token, self);
	/* The file's reader refuses what could not be put into a request. */
	if (!self->iam_call)
		abort();
}

static void impersonated_refresh(struct credential *credential)
{
	struct impersonated *const self = CONTAINER_OF(credential, struct impersonated, base);

	credential_set_skew(self->inner, credential->skew_s);
	self->inner_call = credential_get_token(self->inner, on_inner, self);
}

static bool impersonated_behind(struct credential *credential, const char *account,
				struct credential_route *route)
{
	struct impersonated *const self = CONTAINER_OF(credential, struct impersonated, base);

	*route = (struct credential_route){self->inner, &self->delegates};
	return !strcmp(account, credential->principal);
}

static void impersonated_free(struct credential *credential)
{
	struct impersonated *const self = CONTAINER_OF(credential, struct impersonated, base);

	credential_call_cancel(self->inner_call);
	iam_call_cancel(self->iam_call);
	credential_free(self->inner);
	free(self->endpoint);
	strv_deinit(&self->scopes);
	strv_deinit(&self->delegates);
	free(self);
}

static const struct credential_ops impersonated_ops = {
	.type = "impersonated_service_account",
	.refresh = impersonated_refresh,
	.behind = impersonated_behind,
	.free = impersonated_free,
};

/* The same for the status page's reader, who knows it by the type of the file. */
static const struct credential_ops external_ops = {
	.type = "external_account",
	.refresh = impersonated_refresh,
	.behind = impersonated_behind,
	.free = impersonated_free,
};

struct credential *impersonation_new(const struct impersonation *impersonation,
				     const struct credential_options *options)
{
	struct impersonated *const self = xcalloc(1, sizeof(*self));

	credential_init(&self->base, impersonation->external ? &external_ops : &impersonated_ops,
			options);
	self->base.principal = xstrdup(impersonation->account);
	self->inner = impersonation->inner;
	self->inner->outer = &self->base;
	self->endpoint = xstrdup(options->iamcredentials_endpoint);
	strv_add(&self->scopes, SCOPE, strlen(SCOPE));
	self->delegates = *impersonation->delegates;
	*impersonation->delegates = (struct strv){0};
	self->lifetime_s = impersonation->lifetime_s;
	return &self->base;
}
