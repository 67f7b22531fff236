/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/run/token_follow.h"

#include "broker/base/alloc.h"
#include "broker/base/err.h"
#include "broker/base/secret.h"
#include "broker/base/timer.h"
#include "broker/net/loop.h"
#include "sandbox/kubeconfig/bearer_token.h"
#include "sandbox/kubeconfig/kubeconfig.h"
#include "sandbox/run/run_dir.h"

#include <errno.h>
#include <stdio.h>

struct token_follow {
	struct loop *loop;
	const struct kubeconfig *kubeconfig;
	char *directory;
	struct secret **written; /* one a token file */
	struct timer timer;
};

/* Beside its place and then over it, so that a reader sees the old one or the new one. */
static int replace(const struct token_follow *follow, const char *name, const struct secret *token,
		   struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/%s", follow->directory, name);
	AUTO_FREE char *beside = xasprintf("%s.new", path);

	(void)unlink(beside);
	if (run_dir_write(beside, 0644, secret_bytes(token), secret_len(token), err))
		return -1;
	if (rename(beside, path))
		return err_set_errno(err, errno, "cannot write %s", path);
	return 0;
}

static int follow_one(struct token_follow *follow, size_t i, struct err *err)
{
	const struct kubeconfig_token_file *const file = &follow->kubeconfig->token_files[i];
	AUTO_SECRET struct secret *token = NULL;
	const char *why;

	if (bearer_token_read(file->source, &token, &why))
		return err_set(err, ERR_INVALID, "the kubeconfig's token file %s", why);
	if (follow->written[i] && secret_equal(follow->written[i], token))
		return 0;
	if (replace(follow, file->name, token, err))
		return -1;
	secret_unref(follow->written[i]);
	follow->written[i] = TAKE(token);
	return 0;
}

static void follow_later(struct token_follow *follow);

/* A token that cannot be read is one that is being renewed: the old one stays. */
static void on_timer(struct timer *timer)
{
	struct token_follow *const follow = CONTAINER_OF(timer, struct token_follow, timer);
	struct err ignored;

	for (size_t i = 0; i < follow->kubeconfig->token_file_count; i++)
		(void)!follow_one(follow, i, &ignored);
	follow_later(follow);
}

static void follow_later(struct token_follow *follow)
{
	timer_set_after(loop_timers(follow->loop), &follow->timer, TOKEN_FOLLOW_EVERY_MS, on_timer);
}

int token_follow_new(struct loop *loop, const struct kubeconfig *kubeconfig, const char *directory,
		     struct token_follow **out, struct err *err)
{
	struct token_follow *const follow = xcalloc(1, sizeof(*follow));

	follow->loop = loop;
	follow->kubeconfig = kubeconfig;
	follow->directory = xstrdup(directory);
	follow->written = xcalloc(kubeconfig->token_file_count + 1, sizeof(*follow->written));
	for (size_t i = 0; i < kubeconfig->token_file_count; i++)
		if (follow_one(follow, i, err)) {
			token_follow_free(follow);
			return -1;
		}
	if (kubeconfig->token_file_count)
		follow_later(follow);
	*out = follow;
	return 0;
}

void token_follow_free(struct token_follow *follow)
{
	if (!follow)
		return;
	timer_stop(loop_timers(follow->loop), &follow->timer);
	for (size_t i = 0; i < follow->kubeconfig->token_file_count; i++)
		secret_unref(follow->written[i]);
	free(follow->written);
	free(follow->directory);
	free(follow);
}
