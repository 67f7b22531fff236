/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The login of the host's gcloud, which keeps it in a store of its own: gcloud is asked for an access
 * token and its expiry, as whoever is logged in, never as an account that gcloud impersonates.
 */
#include "broker/credential/credential_impl.h"

#include "broker/base/alloc.h"
#include "broker/base/clock.h"
#include "broker/base/err.h"
#include "broker/base/secret.h"
#include "broker/base/timer.h"
#include "broker/credential/gcloud_answer.h"
#include "broker/net/child.h"
#include "broker/net/child_env.h"

#include <string.h>
#include <sys/stat.h>

#define TIMEOUT_MS 30000
#define MAX_OUTPUT_BYTES ((size_t)256 << 10)
/* Above the 5 minutes in which a cached token is not used any more. */
#define MIN_EXPIRY "--min-expiry=10m"
#define MAX_LIFE_MS ((int64_t)24 * 3600 * 1000)

#define LOG_IN "log in as the broker's user with: gcloud auth login"

struct gcloud {
	struct credential base;
	struct loop *loop;
	struct strv argv;
	struct strv env;
	struct child *child; /* the one that runs, or NULL */
};

static void publish_failure(struct gcloud *self, struct failure *failure)
{
	const struct credential_refreshed result = {.failure = failure};

	credential_publish(&self->base, &result);
}

static void fail(struct gcloud *self, const char *reason, const char *detail)
{
	struct failure failure;

	failure_set(&failure, FAILURE_STEP_GCLOUD, FAILURE_TRANSIENT, reason, "%s", detail);
	publish_failure(self, &failure);
}

/* gcloud exits with 1 for everything; that the login is over is worth another answer than a fault. */
static bool login_is_gone(const struct child_result *result)
{
	static const char *const signs[] = {
		"invalid_grant",
		"invalid_rapt",
		"rapt_required",
		"Reauthentication",
		"do not currently have an active account",
	};

	for (size_t i = 0; i < ARRAY_LEN(signs); i++)
		if (strstr(result->errors, signs[i]))
			return true;
	return false;
}

static void fail_of_login(struct gcloud *self)
{
	struct failure failure;

	failure_set(&failure, FAILURE_STEP_GCLOUD, FAILURE_PERMANENT, "gcloud_login",
		    "gcloud has no login, or it has ended: " LOG_IN);
	failure.public = FAILURE_LOGIN_EXPIRED;
	publish_failure(self, &failure);
}

static void read_answer(struct gcloud *self, const struct child_result *result)
{
	struct gcloud_answer answer;
	const char *const wrong = gcloud_answer_read(result->output, result->output_len, &answer);

	if (wrong) {
		fail(self, "gcloud_answer", wrong);
		return;
	}
	AUTO_SECRET struct secret *token = answer.token;
	AUTO_FREE char *account = answer.account;
	/* Of this host's own clock, by which gcloud has reckoned it. */
	const int64_t life_ms = answer.expires_wall_ms - clock_wall_ms(self->base.timers->clock);
	if (life_ms < 1000) {
		fail(self, "gcloud_expired",
		     "gcloud printed a token that has expired: check the host's clock, or " LOG_IN);
		return;
	}
	if (account) {
		free(self->base.principal);
		self->base.principal = TAKE(account);
	}
	const struct credential_refreshed refreshed = {
		.token = token,
		.life_s = (life_ms < MAX_LIFE_MS ? life_ms : MAX_LIFE_MS) / 1000,
	};
	credential_publish(&self->base, &refreshed);
}

static void on_end(void *ctx, const struct child_result *result)
{
	struct gcloud *const self = ctx;

	self->child = NULL;
	switch (result->end) {
	case CHILD_EXITED:
		if (!result->status)
			read_answer(self, result);
		else if (login_is_gone(result))
			fail_of_login(self);
		else
			fail(self, "gcloud_failed", "gcloud failed: " GCLOUD_BY_HAND);
		return;
	case CHILD_SIGNALLED:
		fail(self, "gcloud_killed", "gcloud was ended by a signal: " GCLOUD_BY_HAND);
		return;
	case CHILD_TIMED_OUT:
		fail(self, "gcloud_timeout", "gcloud did not end within 30 s: " GCLOUD_BY_HAND);
		return;
	case CHILD_TOO_LARGE:
		fail(self, "gcloud_output",
		     "gcloud printed more than is expected: " GCLOUD_BY_HAND);
		return;
	case CHILD_NOT_STARTED:
		fail(self, "gcloud_start",
		     "gcloud cannot be started: check gcloud under [source], and that the broker's "
		     "user may run it");
		return;
	}
}

static void gcloud_refresh(struct credential *credential)
{
	struct gcloud *const self = CONTAINER_OF(credential, struct gcloud, base);
	const struct child_request request = {
		.argv = &self->argv,
		.env = &self->env,
		.max_output_bytes = MAX_OUTPUT_BYTES,
		.timeout_ms = TIMEOUT_MS,
	};

	self->child = child_start(self->loop, &request, on_end, self);
}

static void gcloud_free(struct credential *credential)
{
	struct gcloud *const self = CONTAINER_OF(credential, struct gcloud, base);

	child_cancel(self->child);
	strv_deinit(&self->argv);
	strv_deinit(&self->env);
	free(self);
}

static const struct credential_ops gcloud_ops = {
	.type = "gcloud",
	.refresh = gcloud_refresh,
	.free = gcloud_free,
};

static bool is_program(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

/* The first one in PATH, the caller's; folders that are not absolute do not count. */
static char *find_in_path(const char *path)
{
	while (path && *path) {
		const size_t len = strcspn(path, ":");
		AUTO_FREE char *candidate = xasprintf("%.*s/gcloud", (int)len, path);
		if (path[0] == '/' && is_program(candidate))
			return TAKE(candidate);
		path += len + (path[len] ? 1 : 0);
	}
	return NULL;
}

int gcloud_open(const struct credential_options *options, struct credential **out, struct err *err)
{
	static const char *const arguments[] = {"config", "config-helper", "--format=json",
						MIN_EXPIRY};
	AUTO_FREE char *program = options->gcloud ? xstrdup(options->gcloud) :
						    find_in_path(options->env_path);

	if (!program)
		return err_set(
			err, ERR_INVALID,
			"source gcloud: there is no gcloud in the broker's PATH: install it, "
			"or name it with gcloud under [source]");
	if (!is_program(program))
		return err_set(err, ERR_INVALID,
			       "source gcloud: %s is no program that the broker's user may run: "
			       "check gcloud under [source]",
			       program);
	struct gcloud *const self = xcalloc(1, sizeof(*self));
	credential_init(&self->base, &gcloud_ops, options);
	self->base.principal = xstrdup("");
	self->base.repair = xstrdup(LOG_IN);
	self->base.content = secret_new(program, strlen(program));
	self->loop = options->loop;
	strv_add(&self->argv, program, strlen(program));
	for (size_t i = 0; i < ARRAY_LEN(arguments); i++)
		strv_add(&self->argv, arguments[i], strlen(arguments[i]));
	child_env_copy(&self->env, options->environment);
	/* Empty, it hides what the host's configuration of gcloud says. */
	child_env_set(&self->env, "CLOUDSDK_AUTH_IMPERSONATE_SERVICE_ACCOUNT", "");
	child_env_set(&self->env, "CLOUDSDK_CORE_DISABLE_PROMPTS", "1");
	*out = &self->base;
	return 0;
}
