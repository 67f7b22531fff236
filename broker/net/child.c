/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/net/child.h"

#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/base/strv.h"
#include "broker/net/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <time.h>

/* A killed program is waited for so long; one that the kernel holds longer stays behind as a zombie. */
#define KILLED_WAIT_MS 1000
#define CANCELLED_WAIT_MS 100

struct stream {
	int fd; /* -1: ended */
	struct loop_source *source;
	struct buf bytes;
	bool overflowed;
};

struct child {
	struct loop *loop;
	pid_t pid; /* also of its process group; 0: not started */
	struct loop_source *exit;
	struct stream output;
	struct stream errors;
	struct timer timer;
	enum child_end end;
	int status;
	child_done *done;
	void *ctx;
};

static void stream_close(struct stream *stream)
{
	loop_source_free(stream->source);
	stream->source = NULL;
	auto_close(&stream->fd);
	stream->fd = -1;
}

static void child_free(struct child *child)
{
	timer_stop(loop_timers(child->loop), &child->timer);
	loop_source_free(child->exit);
	stream_close(&child->output);
	stream_close(&child->errors);
	buf_deinit(&child->output.bytes);
	buf_deinit(&child->errors.bytes);
	free(child);
}

static void report(struct child *child)
{
	const struct buf *const output = &child->output.bytes;
	const struct buf *const errors = &child->errors.bytes;
	const struct child_result result = {
		.end = child->end,
		.status = child->status,
		.output = output->data ? output->data : "",
		.output_len = output->len,
		.errors = errors->data ? errors->data : "",
		.errors_len = errors->len,
	};

	child->done(child->ctx, &result);
	child_free(child);
}

/* Also of what it has started, as long as that has not left its group. */
static void kill_group(const struct child *child)
{
	(void)kill(-child->pid, SIGKILL);
}

static void on_given_up(struct timer *timer)
{
	report(CONTAINER_OF(timer, struct child, timer));
}

static void end_early(struct child *child, enum child_end end)
{
	if (child->end != CHILD_EXITED)
		return;
	child->end = end;
	kill_group(child);
	timer_set_after(loop_timers(child->loop), &child->timer, KILLED_WAIT_MS, on_given_up);
}

static void on_timeout(struct timer *timer)
{
	end_early(CONTAINER_OF(timer, struct child, timer), CHILD_TIMED_OUT);
}

/* Reads once. False where there is nothing more for now, or at all. */
static bool stream_read(struct stream *stream)
{
	char chunk[4096];

	const ssize_t n = read(stream->fd, chunk, sizeof(chunk));
	if (n < 0 && errno == EINTR)
		return true;
	if (n < 0 && errno == EAGAIN)
		return false;
	if (n <= 0) {
		stream_close(stream);
		return false;
	}
	const size_t room = stream->bytes.max_bytes - stream->bytes.len;
	const size_t fits = (size_t)n < room ? (size_t)n : room;
	buf_add_bytes(&stream->bytes, chunk, fits);
	explicit_bzero(chunk, (size_t)n);
	stream->overflowed |= fits < (size_t)n;
	return true;
}

static void on_output(void *ctx, int fd, uint32_t events)
{
	struct child *const child = ctx;

	(void)fd;
	(void)events;
	(void)stream_read(&child->output);
	if (child->output.overflowed)
		end_early(child, CHILD_TOO_LARGE);
}

static void on_errors(void *ctx, int fd, uint32_t events)
{
	struct child *const child = ctx;

	(void)fd;
	(void)events;
	(void)stream_read(&child->errors);
}

/* What is in the pipe when its writer has ended; somebody else may hold it open. */
static void drain(struct stream *stream)
{
	while (stream->fd >= 0 && !stream->overflowed && stream_read(stream))
		continue;
}

static void on_ended(void *ctx, const siginfo_t *info)
{
	struct child *const child = ctx;

	/* It is not reaped yet: until then its number cannot be another group's. */
	kill_group(child);
	drain(&child->output);
	drain(&child->errors);
	if (child->end == CHILD_EXITED) {
		child->status = info->si_status;
		if (child->output.overflowed)
			child->end = CHILD_TOO_LARGE;
		else if (info->si_code != CLD_EXITED)
			child->end = CHILD_SIGNALLED;
	}
	report(child);
}

/* A pipe, of which the reading end is ours. */
static int open_stream(struct stream *stream, int *write_end)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return errno;
	stream->fd = ends[0];
	*write_end = ends[1];
	return fcntl(stream->fd, F_SETFL, O_NONBLOCK) ? errno : 0;
}

/* One standard stream: the null device, this process's own, or the end of a pipe. */
static int add_stream(posix_spawn_file_actions_t *actions, int target, bool pass, int pipe_end)
{
	/* A descriptor on itself loses its close-on-exec flag. */
	if (pass)
		return posix_spawn_file_actions_adddup2(actions, target, target);
	if (pipe_end >= 0)
		return posix_spawn_file_actions_adddup2(actions, pipe_end, target);
	return posix_spawn_file_actions_addopen(actions, target, "/dev/null", O_RDONLY, 0);
}

/* The caller's, ended by NULL; the strings are borrowed. */
static char **pointers(const struct strv *list)
{
	char **const array = xreallocarray(NULL, list->count + 1, sizeof(*array));

	for (size_t i = 0; i < list->count; i++)
		array[i] = list->items[i];
	array[list->count] = NULL;
	return array;
}

static int spawn(struct child *child, const struct child_request *request, int output, int errors)
{
	AUTO_FREE char **argv = pointers(request->argv);
	AUTO_FREE char **env = pointers(request->env);
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	sigset_t all;

	(void)sigemptyset(&none);
	(void)sigfillset(&all);
	if (posix_spawn_file_actions_init(&actions) || posix_spawnattr_init(&attributes))
		abort();
	(void)posix_spawnattr_setsigmask(&attributes, &none);
	(void)posix_spawnattr_setsigdefault(&attributes, &all);
	/* A session of its own: a group that can be killed, and no terminal to ask on. */
	(void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
							    POSIX_SPAWN_SETSID);
	int r = add_stream(&actions, STDIN_FILENO, request->pass_input, -1);
	if (!r)
		r = add_stream(&actions, STDOUT_FILENO, request->pass_output, output);
	if (!r)
		r = add_stream(&actions, STDERR_FILENO, request->pass_output, errors);
	if (!r)
		r = posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
	if (!r)
		r = posix_spawn(&child->pid, request->argv->items[0], &actions, &attributes, argv,
				env);
	if (r)
		child->pid = 0;
	(void)posix_spawnattr_destroy(&attributes);
	(void)posix_spawn_file_actions_destroy(&actions);
	return r;
}

/* Kills and reaps it, if the kernel lets it go soon. */
static void put_down(const struct child *child)
{
	static const struct timespec pause = {.tv_nsec = 1000000};
	siginfo_t info = {0};

	kill_group(child);
	for (int ms = 0; ms < CANCELLED_WAIT_MS; ms++) {
		if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG) || info.si_pid)
			return;
		(void)nanosleep(&pause, NULL);
	}
}

static int stream_watch(struct stream *stream, struct child *child, loop_io_fn *fn)
{
	if (stream->fd < 0)
		return 0;
	stream->source =
		loop_add_io(child->loop, stream->fd, EPOLLIN, LOOP_PRIORITY_NORMAL, fn, child);
	return stream->source ? 0 : errno;
}

static int watch(struct child *child)
{
	child->exit = loop_add_child(child->loop, child->pid, on_ended, child);
	if (!child->exit)
		return errno;
	const int r = stream_watch(&child->output, child, on_output);
	return r ? r : stream_watch(&child->errors, child, on_errors);
}

/* 0 or an errno; nothing runs then. */
static int start(struct child *child, const struct child_request *request)
{
	AUTO_CLOSE int output = -1;
	AUTO_CLOSE int errors = -1;

	int r = request->pass_output ? 0 : open_stream(&child->output, &output);
	if (!r && !request->pass_output)
		r = open_stream(&child->errors, &errors);
	if (!r)
		r = spawn(child, request, output, errors);
	if (r)
		return r;
	r = watch(child);
	if (!r)
		return 0;
	loop_source_free(TAKE(child->exit));
	put_down(child);
	child->pid = 0; /* the number is another's to have now */
	return r;
}

struct child *child_start(struct loop *loop, const struct child_request *request, child_done *done,
			  void *ctx)
{
	struct child *const child = xcalloc(1, sizeof(*child));

	child->loop = loop;
	child->done = done;
	child->ctx = ctx;
	child->output.fd = -1;
	child->errors.fd = -1;
	buf_init_sensitive(&child->output.bytes, request->max_output_bytes);
	buf_init_sensitive(&child->errors.bytes, CHILD_MAX_ERROR_BYTES);
	child->status = start(child, request);
	if (child->status) {
		child->end = CHILD_NOT_STARTED;
		stream_close(&child->output);
		stream_close(&child->errors);
		timer_set_after(loop_timers(loop), &child->timer, 0, on_given_up);
	} else if (request->timeout_ms) {
		timer_set_after(loop_timers(loop), &child->timer, request->timeout_ms, on_timeout);
	}
	return child;
}

void child_signal(const struct child *child, int signo)
{
	/* It is reaped with the end of this handle: the number is its own. */
	if (child->pid)
		(void)kill(child->pid, signo);
}

pid_t child_pid(const struct child *child)
{
	return child->pid;
}

void child_cancel(struct child *child)
{
	if (!child)
		return;
	loop_source_free(TAKE(child->exit));
	if (child->end != CHILD_NOT_STARTED)
		put_down(child);
	child_free(child);
}
