/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/run/signals.h"

#include "broker/base/err.h"
#include "broker/net/child.h"
#include "broker/net/loop.h"

#include <errno.h>
#include <signal.h>

/* The client is in a session of its own: what a terminal sends comes here, and only here. */
static const int forwarded[SIGNALS_COUNT] = {
	SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH,
};

static bool asks_to_end(int signo)
{
	return signo == SIGTERM || signo == SIGINT || signo == SIGHUP || signo == SIGQUIT;
}

static void on_signal(void *ctx, int signo)
{
	struct signals *const signals = ctx;

	if (asks_to_end(signo))
		signals->ending = signo;
	if (signals->target)
		child_signal(signals->target, signo);
}

int signals_init(struct signals *signals, struct loop *loop, struct err *err)
{
	*signals = (struct signals){0};
	for (size_t i = 0; i < SIGNALS_COUNT; i++) {
		signals->sources[i] = loop_add_signal(loop, forwarded[i], on_signal, signals);
		if (!signals->sources[i]) {
			const int error = errno;
			signals_deinit(signals);
			return err_set_errno(err, error, "signals");
		}
	}
	return 0;
}

void signals_deinit(struct signals *signals)
{
	for (size_t i = 0; i < SIGNALS_COUNT; i++)
		loop_source_free(signals->sources[i]);
	*signals = (struct signals){0};
}

void signals_set_target(struct signals *signals, struct child *target)
{
	signals->target = target;
}
