/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source under test: a folder of its own with the files it reads, options, one credential and what
 * became of the last call to it. For one source file a test, beside fake_http.h. The time is a fake
 * clock's, or with source_set_up_loop() a real loop's, for sources that run programs.
 */
#pragma once

#include "broker/base/err.h"
#include "broker/base/strv.h"
#include "broker/base/timer.h"
#include "broker/credential/credential.h"
#include "broker/net/loop.h"
#include "tests/unit/fake_clock.h"
#include "tests/unit/fake_http.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define SOURCE_DEADLINE_MS 10000

static struct {
	char dir[64];
	char path[96]; /* of the credential file */
	struct fake_clock fake;
	struct timer_queue timers; /* the fake clock's */
	struct loop *loop;	   /* or NULL */
	struct strv hosts;
	struct credential_options options;
	struct credential *credential;
	struct credential_call *call;
	size_t results;
	char token[128];
	bool failed;
	struct failure failure;
} source;

static inline void source_set_up(void)
{
	memset(&source, 0, sizeof(source));
	fake_clock_init(&source.fake);
	fake_http_reset();
	timer_queue_init(&source.timers, &source.fake.clock);
	(void)snprintf(source.dir, sizeof(source.dir), "/tmp/postern-test-XXXXXX");
	assert_non_null(mkdtemp(source.dir));
	(void)snprintf(source.path, sizeof(source.path), "%s/source.json", source.dir);
	source.options = (struct credential_options){
		.type = "file",
		.file = source.path,
		.metadata_host = "169.254.169.254",
		.subject_token_hosts = &source.hosts,
		.universe_domain = "googleapis.com",
		.oauth2_endpoint = "https://oauth2.googleapis.com",
		.sts_endpoint = "https://sts.googleapis.com",
		.iamcredentials_endpoint = "https://iamcredentials.googleapis.com",
		.timers = &source.timers,
	};
}

static inline void source_set_up_loop(void)
{
	struct err err;

	source_set_up();
	if (loop_new(&source.loop, &err))
		fail_msg("%s", err.text);
	source.options.loop = source.loop;
	source.options.timers = loop_timers(source.loop);
}

static inline void source_tear_down(void)
{
	credential_free(source.credential);
	loop_free(source.loop);
	timer_queue_deinit(&source.timers);
	strv_deinit(&source.hosts);
	DIR *const dir = opendir(source.dir);
	if (!dir)
		abort();
	for (struct dirent *entry; (entry = readdir(dir));) {
		AUTO_FREE char *path = xasprintf("%s/%s", source.dir, entry->d_name);
		(void)unlink(path);
	}
	assert_int_equal(closedir(dir), 0);
	assert_int_equal(rmdir(source.dir), 0);
	assert_int_equal(fake_http.count, 0);
}

static inline void source_write(const char *name, mode_t mode, const char *text)
{
	AUTO_FREE char *path = xasprintf("%s/%s", source.dir, name);
	const size_t len = strlen(text);

	(void)unlink(path);
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, text, len) != (ssize_t)len || fchmod(fd, mode))
		fail_msg("%s cannot be written", path);
}

/* The text with the "@" of each "@/" replaced by the folder's name: how files name others there. */
static inline char *source_expand(const char *text)
{
	char *out = xstrdup(text);
	const char *at;

	while ((at = strstr(out, "@/"))) {
		char *const longer =
			xasprintf("%.*s%s%s", (int)(at - out), out, source.dir, at + 1);
		free(out);
		out = longer;
	}
	return out;
}

static inline void source_open(void)
{
	struct err err = {0};

	credential_free(source.credential);
	source.credential = NULL;
	if (credential_open(&source.options, &source.credential, &err))
		fail_msg("%s", err.text);
}

/* `text` is the credential file's. */
static inline void source_open_file(const char *text)
{
	source_write("source.json", 0600, text);
	source_open();
}

/* The error has each of the texts; no secret, one line, and nothing of it is cut. */
static inline void source_refused(const char *first, const char *second)
{
	struct credential *credential = NULL;
	struct err err = {0};

	if (!credential_open(&source.options, &credential, &err)) {
		credential_free(credential);
		fail_msg("accepted, not refused: %s", first);
	}
	if (!strstr(err.text, first))
		fail_msg("\"%s\" is not in: %s", first, err.text);
	if (!strstr(err.text, second))
		fail_msg("\"%s\" is not in: %s", second, err.text);
	assert_null(strstr(err.text, "SECRET"));
	assert_null(strchr(err.text, '\n'));
	assert_true(strlen(err.text) < sizeof(err.text) - 1);
}

static inline void source_refused_file(const char *text, const char *first, const char *second)
{
	source_write("source.json", 0600, text);
	source_refused(source.path, second);
	source_refused(first, second);
}

static inline void source_result(void *ctx, struct secret *token, const struct failure *failure)
{
	assert_ptr_equal(ctx, &source);
	assert_true(!token != !failure);
	/* Never before credential_get_token() has returned the handle. */
	assert_non_null(source.call);
	source.call = NULL;
	source.results++;
	source.failed = failure != NULL;
	(void)snprintf(source.token, sizeof(source.token), "%s", token ? secret_bytes(token) : "");
	if (failure)
		source.failure = *failure;
}

/* Asks, and lets what is due happen. */
static inline void source_ask(void)
{
	source.results = 0;
	source.call = credential_get_token(source.credential, source_result, &source);
	assert_non_null(source.call);
	if (!source.loop)
		timer_queue_run(&source.timers);
}

struct source_wait {
	struct timer timer;
	size_t requests; /* until so many are open, or there is a result */
	int left_ms;
};

static inline void source_look(struct timer *timer)
{
	struct source_wait *const wait = CONTAINER_OF(timer, struct source_wait, timer);

	if (source.results || fake_http.count >= wait->requests || --wait->left_ms <= 0)
		loop_exit(source.loop, 0);
	else
		timer_set_after(loop_timers(source.loop), timer, 1, source_look);
}

/* Turns the loop until a request is sent or a result has come. A loop that has ended turns no more. */
static inline void source_turn(void)
{
	struct source_wait wait = {.requests = fake_http.count + 1, .left_ms = SOURCE_DEADLINE_MS};
	struct err err;

	timer_set_after(loop_timers(source.loop), &wait.timer, 0, source_look);
	assert_int_equal(loop_run(source.loop, &err), 0);
	assert_true(wait.left_ms > 0);
}

static inline void source_has_token(const char *token)
{
	if (source.failed)
		fail_msg("%s: %s", source.failure.reason, source.failure.detail);
	assert_int_equal(source.results, 1);
	assert_string_equal(source.token, token);
}

static inline void source_has_failed(enum failure_class class, const char *reason,
				     const char *detail)
{
	assert_int_equal(source.results, 1);
	assert_true(source.failed);
	assert_string_equal(source.failure.reason, reason);
	if (source.failure.class != class || !strstr(source.failure.detail, detail))
		fail_msg("%s: %s", failure_class_name(source.failure.class), source.failure.detail);
	assert_true(strlen(source.failure.detail) < sizeof(source.failure.detail) - 1);
	assert_null(strstr(source.failure.detail, "SECRET"));
}
