/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/base/confine.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

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

void confine_memory(struct rlimit *core_before)
{
	struct rlimit core = {0};

	(void)getrlimit(RLIMIT_CORE, &core);
	if (core_before)
		*core_before = core;
	else
		core.rlim_max = 0;
	core.rlim_cur = 0;
	(void)setrlimit(RLIMIT_CORE, &core);
	(void)prctl(PR_SET_DUMPABLE, DUMPABLE, 0, 0, 0);
}

void confine_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}
