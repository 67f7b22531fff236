/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postern: runs agents in sandboxes that hold a session of the broker and nothing else of the host.
 */
#include "broker/base/json.h"
#include "broker/base/log.h"
#include "sandbox/caller.h"
#include "sandbox/commands.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

/* LeakSanitizer attaches to its own process, which a process that is not dumpable forbids. */
#if defined(__SANITIZE_ADDRESS__)
#define DUMPABLE 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DUMPABLE 1
#endif
#endif
#ifndef DUMPABLE
#define DUMPABLE 0
#endif

/* A file opened later must not become standard output of a child. */
static void keep_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
			abort();
}

int main(int argc, char **argv)
{
	struct caller caller;

	/*
	 * No core dump and no debugger: variables of the caller are in here. Ends with the next execve(),
	 * so that a command without a sandbox is what it always was.
	 */
	(void)prctl(PR_SET_DUMPABLE, DUMPABLE, 0, 0, 0);
	keep_standard_descriptors();
	json_clear_on_free();
	log_init(LOG_LEVEL_WARNING, false);
	caller_init(&caller, environ);
	const int status = commands_main(&caller, argc, argv);
	caller_deinit(&caller);
	return status;
}
