/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/run/reaper.h"

#include "broker/base/err.h"
#include "sandbox/plan/variables.h"
#include "sandbox/run/run_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

/* What is said to it: a client's number, or this. */
#define DISMISSED ((pid_t) - 1)
#define CALL_TIMEOUT_S 30

/*
 * When it is tried to remove the containers, in ms after the end of the launcher. Again and again, since
 * the daemon may be making one for a client that is gone; "no such container" is told by no exit status.
 */
static const int tries_ms[] = {0, 300, 700, 1200, 2000, 5000, 10000, 20000};

static void sleep_ms(int ms)
{
	const struct timespec span = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	(void)nanosleep(&span, NULL);
}

static void remove_container(const struct reaper_task *task, const char *container)
{
	char *const argv[] = {
		(char *)task->binary, "rm", "--force", "--volumes", (char *)container, NULL,
	};
	posix_spawnattr_t attributes;
	sigset_t none;
	pid_t pid;

	(void)sigemptyset(&none);
	if (posix_spawnattr_init(&attributes))
		return;
	(void)posix_spawnattr_setsigmask(&attributes, &none);
	(void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	if (!posix_spawn(&pid, task->binary, NULL, &attributes, argv, task->environ->items)) {
		sigset_t child;
		const struct timespec limit = {.tv_sec = CALL_TIMEOUT_S};
		(void)sigemptyset(&child);
		(void)sigaddset(&child, SIGCHLD);
		if (sigtimedwait(&child, NULL, &limit) < 0)
			(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
	}
	(void)posix_spawnattr_destroy(&attributes);
}

/* Reads until the launcher is gone. True where it has dismissed us; else its client, or -1. */
static bool wait_for_end(int fd, int *client)
{
	pid_t said;

	*client = -1;
	for (;;) {
		const ssize_t n = read(fd, &said, sizeof(said));
		if (n < 0 && errno == EINTR)
			continue;
		if (n != sizeof(said))
			return false;
		if (said == DISMISSED)
			return true;
		/* Taken while the launcher has not reaped it: the number cannot be another's. */
		if (*client >= 0)
			close(*client);
		*client = (int)syscall(SYS_pidfd_open, said, 0);
	}
}

/* Nothing of the launcher's may be held open: its lease ends when its last copy is closed. */
static int keep_only(int ours)
{
	const int null = open("/dev/null", O_RDWR);
	const int kept = STDERR_FILENO + 1;

	if (null < 0)
		return -1;
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		(void)dup2(null, fd);
	if (ours != kept)
		(void)dup2(ours, kept);
	(void)fcntl(kept, F_SETFD, FD_CLOEXEC);
	closefrom(kept + 1);
	return kept;
}

static void reap(const struct reaper_task *task, int fd)
{
	int waited_ms = 0;
	int client;

	if (wait_for_end(fd, &client))
		return;
	if (client >= 0)
		(void)syscall(SYS_pidfd_send_signal, client, SIGKILL, NULL, 0);
	for (size_t i = 0; i < ARRAY_LEN(tries_ms); i++) {
		sleep_ms(tries_ms[i] - waited_ms);
		waited_ms = tries_ms[i];
		remove_container(task, task->container);
		if (task->door)
			remove_container(task, task->door);
		if (!i)
			run_dir_remove_path(task->directory);
	}
}

static void be_reaper(const struct reaper_task *task, int fd)
{
	sigset_t all;

	(void)setsid();
	(void)prctl(PR_SET_NAME, "postern-reaper");
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	const int kept = keep_only(fd);
	if (kept >= 0 && !chdir("/"))
		reap(task, kept);
	_exit(0);
}

int reaper_start(struct reaper *reaper, const struct reaper_task *task, struct err *err)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return err_set_errno(err, errno, "cannot make a pair of sockets");
	const pid_t pid = fork();
	if (!pid)
		be_reaper(task, ends[0]);
	const int error = errno;
	close(ends[0]);
	if (pid < 0) {
		close(ends[1]);
		return err_set_errno(err, error, "cannot start a process");
	}
	reaper->socket = ends[1];
	return 0;
}

static void say(const struct reaper *reaper, pid_t word)
{
	/* A reaper that was killed cannot be helped, and takes nobody with it. */
	(void)send(reaper->socket, &word, sizeof(word), MSG_NOSIGNAL);
}

void reaper_tell_client(const struct reaper *reaper, pid_t client)
{
	if (reaper->socket >= 0)
		say(reaper, client);
}

void reaper_leave(struct reaper *reaper)
{
	if (reaper->socket >= 0)
		close(reaper->socket);
	reaper->socket = -1;
}

void reaper_dismiss(struct reaper *reaper)
{
	if (reaper->socket >= 0)
		say(reaper, DISMISSED);
	reaper_leave(reaper);
}
