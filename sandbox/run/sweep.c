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

#include <fcntl.h>
#include <string.h>

#define START_FIELD 22

uint64_t sweep_start_of(pid_t pid)
{
	AUTO_FREE char *path = xasprintf("/proc/%d/stat", pid);
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[1024];
	uint64_t start;

	/* A file of proc: it has no size and comes whole with one read. */
	const ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	/* The second field is the program's name in brackets and may hold anything. */
	char *field = strrchr(text, ')');
	for (int i = 2; field && i < START_FIELD; i++) {
		field = strchr(field, ' ');
		field = field ? field + 1 : NULL;
	}
	if (!field)
		return 0;
	field[strcspn(field, " ")] = '\0';
	return parse_uint(field, 0, UINT64_MAX, &start) ? 0 : start;
}

/* True where the labels name a launcher and that process is no more. */
static bool is_orphan(const struct container *container)
{
	return container->launcher_pid && container->launcher_start &&
	       sweep_start_of((pid_t)container->launcher_pid) != container->launcher_start;
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
	    container_read(&container, out.data ? out.data : "", out.len) || !is_orphan(&container))
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
