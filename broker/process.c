/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/process.h"

#include "broker/base/alloc.h"
#include "broker/base/confine.h"
#include "broker/base/err.h"

#include <errno.h>
#include <grp.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* Listeners, the control socket, libraries, and a working share of connections. */
#define OWN_DESCRIPTORS 256
/* Its listening sockets, its lease, and where it is inside a sandbox, its door. */
#define SESSION_DESCRIPTORS 4

void process_harden(void)
{
	confine_descriptors();
	confine_memory(NULL);
	(void)umask(0077);
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

void process_close_on_exec(void)
{
	(void)close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
}

int process_raise_descriptors(size_t sessions, struct err *err)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return err_set_errno(err, errno, "descriptor limit");
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		return err_set_errno(err, errno, "descriptor limit");
	const size_t needed = sessions * SESSION_DESCRIPTORS + OWN_DESCRIPTORS;
	if (limit.rlim_max >= needed)
		return 0;
	return err_set(
		err, ERR_INVALID,
		"max_sessions = %zu needs %zu descriptors and the hard limit is %llu; raise it "
		"(LimitNOFILE= in the unit, ulimit -Hn) or lower max_sessions",
		sessions, needed, (unsigned long long)limit.rlim_max);
}

bool process_is_member(const char *name)
{
	const struct group *const group = getgrnam(name);

	if (!group || geteuid() == 0)
		return false;
	const gid_t gid = group->gr_gid;
	if (getegid() == gid)
		return true;
	const int count = getgroups(0, NULL);
	if (count <= 0)
		return false;
	AUTO_FREE gid_t *groups = xreallocarray(NULL, (size_t)count, sizeof(*groups));
	const int got = getgroups(count, groups);
	for (int i = 0; i < got; i++)
		if (groups[i] == gid)
			return true;
	return false;
}
