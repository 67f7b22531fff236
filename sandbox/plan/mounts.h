/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files and directories of the host may be seen in a sandbox.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stdbool.h>

struct caller;
struct err;

struct mount_request {
	char *src;
	char *dst;
	bool ro;
};

void mount_request_deinit(struct mount_request *request);

/*
 * "SRC:DST[:ro]" into a zeroed request. ERR_USAGE: another form. ERR_UNSUPPORTED: a DST that the sandbox
 * needs for itself.
 */
NODISCARD int mount_parse(const char *text, struct mount_request *out, struct err *err);

/* Whose files must not cross: the caller's own, and what this run uses. NULL: none is known. */
struct mount_guard {
	const struct caller *caller;
	const char *control;	/* the broker's control socket */
	const char *kubeconfig; /* all of the file: one context crosses by itself */
	const char *runs;	/* where the directories of runs are made */
};

/*
 * The canonical path of a source that may cross, the caller's to free. `what` ("--mount") begins errors.
 * ERR_INVALID: it is not there or its path cannot be written in an engine's option. ERR_UNSUPPORTED: it is,
 * holds or lies in what may never cross, symbolic links followed: engine sockets, sockets, devices, pipes,
 * the home directory, cloud and login configuration, kubeconfigs, the runs' own directories, the kernel's
 * and the system's.
 */
NODISCARD int mount_check_source(const char *src, const struct mount_guard *guard, const char *what,
				 char **canonical, struct err *err);

/*
 * Whether the file holds, as far as its place tells, the caller's login to something else than a cluster: cloud
 * or login configuration, links followed. Of a file that is not there: no.
 */
bool mount_is_login(const char *path, const struct mount_guard *guard);
