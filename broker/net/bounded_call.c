/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/net/bounded_call.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/time.h>
#include <unistd.h>

/* The signal is only to end a system call. */
static void on_alarm(int signo)
{
	(void)signo;
}

void bounded_call_prepare(void)
{
	const struct sigaction action = {.sa_handler = on_alarm}; /* no SA_RESTART */
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGALRM);
	(void)sigaction(SIGALRM, &action, NULL);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void set_alarm(suseconds_t every_us)
{
	const struct itimerval timer = {{0, every_us}, {0, every_us}};

	(void)setitimer(ITIMER_REAL, &timer, NULL);
}

void bounded_call_begin(void)
{
	set_alarm((suseconds_t)BOUNDED_CALL_MS * 1000);
}

void bounded_call_end(void)
{
	const int errnum = errno;

	set_alarm(0);
	errno = errnum;
}

void bounded_close(int fd)
{
	bounded_call_begin();
	close(fd); /* interrupted, it has closed all the same */
	bounded_call_end();
}
