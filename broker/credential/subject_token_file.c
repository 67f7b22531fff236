/* SPDX-License-Identifier: Apache-2.0 */
/* A subject token in a file that somebody keeps fresh, such as a projected token of Kubernetes. */
#include "broker/credential/subject_token.h"

#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/base/err.h"
#include "broker/base/file.h"
#include "broker/base/timer.h"
#include "broker/credential/credential_impl.h"

#define MAX_FILE_BYTES ((size_t)128 << 10)

struct subject_file {
	struct subject_source base;
	struct timer_queue *timers;
	struct timer timer;
	char *path;
};

static void read_now(struct timer *timer)
{
	struct subject_file *const self = CONTAINER_OF(timer, struct subject_file, timer);
	AUTO_BUF struct buf content;
	struct err err;

	buf_init_sensitive(&content, MAX_FILE_BYTES);
	if (file_read(self->path, &content, NULL, &err))
		subject_fail(
			&self->base, FAILURE_TRANSIENT, "subject_token_file",
			"the file of credential_source cannot be read: check that it is there, "
			"that the broker's user may read it, and what writes it");
	else
		subject_publish(&self->base, content.data ? content.data : "", content.len);
}

static void subject_file_read(struct subject_source *source)
{
	struct subject_file *const self = CONTAINER_OF(source, struct subject_file, base);

	timer_set_after(self->timers, &self->timer, 0, read_now);
}

static void subject_file_free(struct subject_source *source)
{
	struct subject_file *const self = CONTAINER_OF(source, struct subject_file, base);

	timer_stop(self->timers, &self->timer);
	free(self->path);
	free(self);
}

static const struct subject_source_ops subject_file_ops = {
	.read = subject_file_read,
	.free = subject_file_free,
};

int subject_file_open(const struct credential_file *source, const struct subject_account *account,
		      struct subject_source **out, struct err *err)
{
	const char *path;

	(void)account;
	if (credential_file_string(source, "file", "name the file of the token", &path, err))
		return -1;
	/* Relative to what? Not to where somebody happened to start the broker. */
	if (path[0] != '/')
		return credential_file_refuse(source, err, "file",
					      "is no absolute path: write it with all its folders");
	struct subject_file *const self = xcalloc(1, sizeof(*self));
	self->base.ops = &subject_file_ops;
	self->timers = source->options->timers;
	self->path = xstrdup(path);
	*out = &self->base;
	return 0;
}
