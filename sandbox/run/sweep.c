/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/run/sweep.h"

#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/base/err.h"
#include "broker/base/parse.h"
#include "sandbox/client/notice.h"
#include "sandbox/plan/plan.h"
#include "sandbox/run/container.h"
#include "sandbox/run/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define START_FIELD 22

/* 0: there is one, *start is when it began; ESRCH: there is none; else it is not known. */
static int read_start(pid_t pid, uint64_t *start)
{
	AUTO_FREE char *path = xasprintf("/proc/%d/stat", pid);
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[1024];

	if (fd < 0)
		return errno == ENOENT ? ESRCH : errno;
	/* A file of proc: it has no size and comes whole with one read. */
	const ssize_t n = read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return errno;
	text[n] = '\0';
	/* The second field is the program's name in brackets and may hold anything. */
	char *field = strrchr(text, ')');
	for (int i = 2; field && i < START_FIELD; i++) {
		field = strchr(field, ' ');
		field = field ? field + 1 : NULL;
	}
	if (!field)
		return EBADMSG;
	field[strcspn(field, " ")] = '\0';
	return parse_uint(field, 0, UINT64_MAX, start) ? EBADMSG : 0;
}

void sweep_name_self(struct plan_launcher *self)
{
	struct stat st;

	*self = (struct plan_launcher){.pid = (uint64_t)getpid()};
	if (read_start(getpid(), &self->start))
		self->start = 0;
	if (!stat("/proc/self/ns/pid", &st))
		self->pid_namespace = st.st_ino;
}

/*
 * True where the labels name a launcher whose pid is of our namespace, and that process is no more. A launcher in
 * a container of its own, beside the same engine, is for those beside it to judge.
 */
static bool is_orphan(const struct plan_launcher *launcher)
{
	struct plan_launcher self;
	uint64_t start;

	sweep_name_self(&self);
	if (!launcher->pid || launcher->pid > INT32_MAX || !launcher->start ||
	    !launcher->pid_namespace || launcher->pid_namespace != self.pid_namespace)
		return false;
	const int error = read_start((pid_t)launcher->pid, &start);
	return error ? error == ESRCH : start != launcher->start;
}

static void sweep_one(const struct engine *engine, const char *id)
{
	const char *const inspect[] = {"container", "inspect", id, NULL};
	const char *const remove[] = {"rm", "--force", "--volumes", id, NULL};
	AUTO_CONTAINER struct container container = {0};
	AUTO_BUF struct buf out;
	struct err err;

	buf_init(&out, ENGINE_MAX_ANSWER_BYTES);
	if (engine_ask(engine, inspect, &out, &err) ||
	    container_read(&container, out.data ? out.data : "", out.len) ||
	    !is_orphan(&container.launcher))
		return;
	if (engine_ask(engine, remove, NULL, &err))
		notice("a left-over container stays: %s", err.text);
	else
		notice("removed container %.12s of a launcher that was killed", id);
}

struct engine_call *sweep_look(const struct engine *engine, const char *owner)
{
	AUTO_FREE char *filter = xasprintf("label=" PLAN_LABEL_OWNER "=%s", owner);
	const char *const list[] = {"ps",	"--all", "--quiet", "--no-trunc",
				    "--filter", filter,	 NULL};

	return engine_call_start(engine, list);
}

void sweep_finish(const struct engine *engine, struct engine_call *takes_look)
{
	AUTO_BUF struct buf out;
	struct err err;

	buf_init(&out, ENGINE_MAX_ANSWER_BYTES);
	if (engine_call_end(takes_look, &out, &err)) {
		notice("left-over containers were not looked for: %s", err.text);
		return;
	}
	const char *line = out.data ? out.data : "";
	while (*line) {
		const size_t len = strcspn(line, "\n");
		AUTO_FREE char *id = xstrndup(line, len);
		if (len)
			sweep_one(engine, id);
		line += len + (line[len] == '\n');
	}
}
