/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/door/confine.h"

#include "broker/base/compiler.h"
#include "sandbox/door/exit_code.h"

#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#define POLL SYS_poll
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#define POLL SYS_ppoll
#else
#error "the filter knows the system calls of x86_64 and aarch64 only"
#endif

#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define SKIP_UNLESS(value, count) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (count))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, (what))
#define ALLOW(call) SKIP_UNLESS(call, 1), RETURN(SECCOMP_RET_ALLOW)

/* x32 calls have other numbers and match none. */
static struct sock_filter FILTER[] = {
	LOAD(arch),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
	RETURN(SECCOMP_RET_KILL_PROCESS),
	LOAD(nr),
	/* Without the first, a door that was stopped or frozen dies when it goes on. */
	ALLOW(SYS_restart_syscall),
	ALLOW(POLL),
	ALLOW(SYS_read),
	ALLOW(SYS_recvfrom),
	ALLOW(SYS_sendto),
	ALLOW(SYS_sendmsg),
	ALLOW(SYS_connect),
	ALLOW(SYS_close),
	ALLOW(SYS_write),
	ALLOW(SYS_exit_group),
	SKIP_UNLESS(SYS_socket, 3),
	LOAD(args[0]),
	SKIP_UNLESS(AF_UNIX, 1),
	RETURN(SECCOMP_RET_ALLOW),
	RETURN(SECCOMP_RET_KILL_PROCESS),
};

void confine(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
	struct __user_cap_data_struct left[_LINUX_CAPABILITY_U32S_3];
	const struct sock_fprog program = {.len = ARRAY_LEN(FILTER), .filter = FILTER};

	demand(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
		       prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 &&
		       prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == 0 &&
		       syscall(SYS_capset, &header, none) == 0 &&
		       syscall(SYS_capget, &header, left) == 0,
	       EXIT_CONFINE, "privileges cannot be given up:");
	for (size_t i = 0; i < ARRAY_LEN(left); i++) {
		if (left[i].effective | left[i].permitted | left[i].inheritable)
			die(EXIT_CONFINE, "capabilities are left", "after all were dropped");
	}
	demand(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, EXIT_CONFINE,
	       "the filter of system calls cannot be set:");
}
