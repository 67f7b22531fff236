/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A service account's key: the source's access token is a JWT that we sign ourselves (AIP-4111), so
 * that nobody is asked for it.
 */
#include "broker/credential/credential_impl.h"

#include "broker/base/alloc.h"
#include "broker/base/clock.h"
#include "broker/base/err.h"
#include "broker/base/json.h"
#include "broker/base/parse.h"
#include "broker/base/secret.h"
#include "broker/base/timer.h"
#include "broker/google/jwt.h"

/* Google accepts an hour from iat on, and refuses an iat that is ahead of its clock. */
#define BACKDATE_S 30
#define LIFE_S 3600

#define NEW_KEY                                               \
	"copy the key file again, or create a new one with: " \
	"gcloud iam service-accounts keys create"

struct service_account {
	struct credential base;
	struct jwt_key *key;
	char *key_id; /* NULL where the file has none */
	char *universe;
};

/*
 * A new assertion for each call. A kept one would go stale in a suspend or a clock step and then be
 * sent again and again.
 */
static int service_account_make(struct credential *credential, const char *service,
				struct secret **out, struct failure *failure)
{
	const struct service_account *const self =
		CONTAINER_OF(credential, struct service_account, base);
	const json_int_t wall_s = clock_wall_ms(credential->timers->clock) / 1000;
	const json_int_t iat_s = wall_s - credential->skew_s - BACKDATE_S;
	AUTO_FREE char *audience = xasprintf("https://%s.%s/", service, self->universe);
	struct err err;

	json_auto_t *claims = json_pack("{s:s, s:s, s:s, s:I, s:I}", "iss", credential->principal,
					"sub", credential->principal, "aud", audience, "iat", iat_s,
					"exp", iat_s + LIFE_S);
	if (!jwt_sign(self->key, self->key_id, claims, out, &err))
		return 0;
	failure_set(failure, FAILURE_STEP_SOURCE, FAILURE_PERMANENT, "bad_key",
		    "no assertion could be signed with the service account's key: " NEW_KEY);
	return -1;
}

static void service_account_free(struct credential *credential)
{
	struct service_account *const self = CONTAINER_OF(credential, struct service_account, base);

	jwt_key_free(self->key);
	free(self->key_id);
	free(self->universe);
	free(self);
}

static const struct credential_ops service_account_ops = {
	.type = "service_account",
	.make = service_account_make,
	.free = service_account_free,
};

int service_account_new(const struct credential_file *file, struct credential **out,
			struct err *err)
{
	const char *email;
	const char *pem;
	const char *key_id = NULL;
	struct jwt_key *key;

	if (credential_file_string(file, "client_email", NEW_KEY, &email, err) ||
	    credential_file_string(file, "private_key", NEW_KEY, &pem, err))
		return -1;
	if (!text_is_email(email))
		return credential_file_refuse(file, err, "client_email",
					      "is no e-mail address: " NEW_KEY);
	if (json_object_get(file->root, "private_key_id") &&
	    credential_file_string(file, "private_key_id", NEW_KEY, &key_id, err))
		return -1;
	if (jwt_key_read(pem, &key, err)) {
		const struct err why = *err;
		return credential_file_refuse(file, err, "private_key", "%s: " NEW_KEY, why.text);
	}
	struct service_account *const self = xcalloc(1, sizeof(*self));
	credential_init(&self->base, &service_account_ops, file->options);
	self->base.principal = xstrdup(email);
	self->base.repair =
		xasprintf("create a new key with: gcloud iam service-accounts keys create %s "
			  "--iam-account=%s",
			  file->path, email);
	self->key = key;
	self->key_id = key_id ? xstrdup(key_id) : NULL;
	self->universe = xstrdup(file->options->universe_domain);
	*out = &self->base;
	return 0;
}
