/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A subject token that a program prints (AIP-4117): run without a shell, and only where the operator has
 * allowed programs to be run at all.
 */
#include "broker/credential/subject_token.h"

#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/base/clock.h"
#include "broker/base/err.h"
#include "broker/base/file.h"
#include "broker/base/log.h"
#include "broker/base/secret.h"
#include "broker/base/timer.h"
#include "broker/credential/command_line.h"
#include "broker/credential/credential_impl.h"
#include "broker/credential/executable_response.h"
#include "broker/net/child.h"
#include "broker/net/child_env.h"

#include <inttypes.h>
#include <string.h>

#define ALLOW "GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES"
#define MIN_TIMEOUT_MS 5000
#define MAX_TIMEOUT_MS 120000
#define DEFAULT_TIMEOUT_MS 30000
#define MAX_ANSWER_BYTES ((size_t)128 << 10)

struct subject_executable {
	struct subject_source base;
	struct loop *loop;
	struct timer_queue *timers;
	struct timer timer; /* the look at the output file */
	struct child *child;
	struct strv argv;
	struct strv env;
	int64_t timeout_ms;
	char *output_file; /* NULL: none */
};

static int64_t wall_s(const struct subject_executable *self)
{
	return clock_wall_ms(self->timers->clock) / 1000;
}

static void publish_response(struct subject_executable *self, const struct child_result *result)
{
	struct subject_source *const base = &self->base;
	struct executable_response response;

	executable_response_read(result->output, result->output_len, wall_s(self), &response);
	AUTO_SECRET struct secret *token = response.token;
	switch (response.verdict) {
	case EXECUTABLE_GOOD:
		subject_publish_text(base, secret_bytes(token), secret_len(token));
		return;
	case EXECUTABLE_EXPIRED:
		subject_fail(
			base, FAILURE_TRANSIENT, "subject_token_expired",
			"the program of credential_source gave a token that has expired: check "
			"the program and the clock");
		return;
	case EXECUTABLE_REFUSED:
		subject_fail(base, FAILURE_PERMANENT, response.code,
			     "the program of credential_source says that it has no token, and the "
			     "reason is its own code: run it by hand as the broker's user");
		return;
	case EXECUTABLE_BROKEN:
		subject_fail(base, FAILURE_TRANSIENT, "executable_answer",
			     "the program of credential_source did not print what AIP-4117 says: "
			     "version 1, success, token_type and id_token or saml_response");
		return;
	}
}

static void on_end(void *ctx, const struct child_result *result)
{
	static const struct {
		const char *reason;
		const char *detail;
	} failures[] = {
		[CHILD_EXITED] =
			{"executable_failed",
			 "the program of credential_source exited with a status other than "
			 "0: run it by hand as the broker's user"},
		[CHILD_SIGNALLED] = {"executable_killed",
				     "the program of credential_source was ended by a signal: run "
				     "it by hand as the broker's user"},
		[CHILD_TIMED_OUT] = {"executable_timeout",
				     "the program of credential_source did not end within "
				     "timeout_millis: run it by hand, or allow it more time"},
		[CHILD_TOO_LARGE] = {"executable_output",
				     "the program of credential_source printed more than any token "
				     "takes: run it by hand as the broker's user"},
		[CHILD_NOT_STARTED] = {"executable_start",
				       "the program of credential_source cannot be started: check "
				       "that it is there and that the broker's user may run it"},
	};
	struct subject_executable *const self = ctx;

	self->child = NULL;
	if (result->end == CHILD_EXITED && !result->status)
		publish_response(self, result);
	else
		subject_fail(&self->base, FAILURE_TRANSIENT, failures[result->end].reason,
			     failures[result->end].detail);
}

/* A good token that an earlier run left there; the caller's. One without an end counts as expired. */
static struct secret *left_token(const struct subject_executable *self)
{
	AUTO_BUF struct buf content;
	struct executable_response response;
	struct err err;

	buf_init_sensitive(&content, MAX_ANSWER_BYTES);
	if (!self->output_file || file_read(self->output_file, &content, NULL, &err))
		return NULL;
	executable_response_read(content.data, content.len, wall_s(self), &response);
	AUTO_SECRET struct secret *token = response.token;
	return response.has_expiry ? TAKE(token) : NULL;
}

static void begin(struct timer *timer)
{
	struct subject_executable *const self =
		CONTAINER_OF(timer, struct subject_executable, timer);
	AUTO_SECRET struct secret *left = left_token(self);

	if (left) {
		subject_publish_text(&self->base, secret_bytes(left), secret_len(left));
		return;
	}
	const struct child_request request = {
		.argv = &self->argv,
		.env = &self->env,
		.max_output_bytes = MAX_ANSWER_BYTES,
		.timeout_ms = self->timeout_ms,
	};
	self->child = child_start(self->loop, &request, on_end, self);
}

static void subject_executable_read(struct subject_source *source)
{
	struct subject_executable *const self =
		CONTAINER_OF(source, struct subject_executable, base);

	timer_set_after(self->timers, &self->timer, 0, begin);
}

static void subject_executable_free(struct subject_source *source)
{
	struct subject_executable *const self =
		CONTAINER_OF(source, struct subject_executable, base);

	timer_stop(self->timers, &self->timer);
	child_cancel(self->child);
	strv_deinit(&self->argv);
	strv_deinit(&self->env);
	free(self->output_file);
	free(self);
}

static const struct subject_source_ops subject_executable_ops = {
	.read = subject_executable_read,
	.free = subject_executable_free,
};

static int check_allowed(const struct credential_file *source, struct err *err)
{
	const char *const allowed = source->options->env_executables;

	if (allowed && !strcmp(allowed, "1"))
		return 0;
	return credential_file_refuse(source, err, "executable",
				      "asks to run a program: if it is yours, allow it by " ALLOW
				      "=1 in the broker's environment");
}

static int read_timeout(const struct credential_file *source, int64_t *out_ms, struct err *err)
{
	const json_t *const field = json_object_get(source->root, "timeout_millis");
	const json_int_t value = json_integer_value(field);

	*out_ms = DEFAULT_TIMEOUT_MS;
	if (!field)
		return 0;
	if (!json_is_integer(field) || value < MIN_TIMEOUT_MS || value > MAX_TIMEOUT_MS)
		return credential_file_refuse(source, err, "timeout_millis",
					      "must be a number from %d to %d", MIN_TIMEOUT_MS,
					      MAX_TIMEOUT_MS);
	*out_ms = value;
	return 0;
}

static int read_output_file(const struct credential_file *source, char **out, struct err *err)
{
	const char *path;

	if (!json_object_get(source->root, "output_file"))
		return 0;
	if (credential_file_string(source, "output_file", "name a file, or remove it", &path, err))
		return -1;
	if (path[0] != '/')
		return credential_file_refuse(source, err, "output_file",
					      "is no absolute path: write it with all its folders");
	*out = xstrdup(path);
	return 0;
}

static void fill_env(struct subject_executable *self, const struct credential_options *options,
		     const struct subject_account *account)
{
	const char *const impersonated = account->impersonated;
	const struct {
		const char *name;
		const char *value; /* NULL: stays as it is */
	} variables[] = {
		{"GOOGLE_EXTERNAL_ACCOUNT_AUDIENCE", account->audience},
		{"GOOGLE_EXTERNAL_ACCOUNT_TOKEN_TYPE", account->subject_token_type},
		{"GOOGLE_EXTERNAL_ACCOUNT_ID", impersonated ? impersonated : ""},
		{"GOOGLE_EXTERNAL_ACCOUNT_INTERACTIVE", "0"},
		{"GOOGLE_EXTERNAL_ACCOUNT_REVOKE", "0"},
		{"GOOGLE_EXTERNAL_ACCOUNT_IMPERSONATED_EMAIL", impersonated},
		{"GOOGLE_EXTERNAL_ACCOUNT_OUTPUT_FILE", self->output_file},
	};

	child_env_copy(&self->env, options->environment);
	for (size_t i = 0; i < ARRAY_LEN(variables); i++)
		if (variables[i].value)
			child_env_set(&self->env, variables[i].name, variables[i].value);
}

int subject_executable_open(const struct credential_file *source,
			    const struct subject_account *account, struct subject_source **out,
			    struct err *err)
{
	static const char field[] = "executable";
	AUTO_FREE char *prefix = xasprintf("%s%s.", source->prefix, field);
	const struct credential_file executable = {
		.path = source->path,
		.prefix = prefix,
		.root = json_object_get(source->root, field),
		.options = source->options,
	};
	AUTO_FREE char *output_file = NULL;
	AUTO_STRV struct strv argv = {0};
	const char *command;
	int64_t timeout_ms;

	if (check_allowed(source, err) ||
	    credential_file_string(&executable, "command", "name the program", &command, err) ||
	    read_timeout(&executable, &timeout_ms, err) ||
	    read_output_file(&executable, &output_file, err))
		return -1;
	if (command_line_split(&argv, command) || argv.items[0][0] != '/')
		return credential_file_refuse(
			&executable, err, "command",
			"is no program by its absolute path with its arguments; there is no shell, "
			"and only double quotes keep blanks together");
	struct subject_executable *const self = xcalloc(1, sizeof(*self));
	self->base.ops = &subject_executable_ops;
	self->loop = source->options->loop;
	self->timers = source->options->timers;
	self->timeout_ms = timeout_ms;
	self->output_file = TAKE(output_file);
	self->argv = argv;
	argv = (struct strv){0};
	fill_env(self, source->options, account);
	*out = &self->base;
	return 0;
}
