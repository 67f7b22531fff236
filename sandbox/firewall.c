/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/firewall.h"

#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/base/clock.h"
#include "broker/base/err.h"
#include "broker/base/file.h"
#include "broker/base/json.h"
#include "broker/base/strv.h"
#include "broker/net/child.h"
#include "broker/net/loop.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#define REPAIR                                                                \
	"run `scripts/host-firewall install` as root, or take the risk with " \
	"--allow-unverified-firewall"
#define BOOT_ID_PATH "/proc/sys/kernel/random/boot_id"
#define BOOT_ID_LEN 36
#define CHECK_TIMEOUT_MS 30000
#define MAX_VERDICT_BYTES 65536

int firewall_judge(const char *bytes, size_t len, const char *boot_id, const struct clock *clock,
		   struct err *err)
{
	json_auto_t *verdict = json_read_object(bytes, len);
	const char *const boot = json_get_string(verdict, "boot_id");
	const json_t *const time_s = json_object_get(verdict, "time");

	if (!boot || !json_is_integer(time_s))
		return err_set(err, ERR_SYSTEM, FIREWALL_VERDICT_PATH " is no verdict; " REPAIR);
	const int64_t age_s = clock_wall_ms(clock) / 1000 - json_integer_value(time_s);
	if (strcmp(boot, boot_id) != 0 || age_s < 0 || age_s >= FIREWALL_VERDICT_MAX_AGE_S)
		return err_set(err, ERR_SYSTEM,
			       "the host's firewall was not checked for %d s; " REPAIR,
			       FIREWALL_VERDICT_MAX_AGE_S);
	if (!json_is_true(json_object_get(verdict, "ok")))
		return err_set(err, ERR_SYSTEM,
			       "sandboxes may reach the host's metadata server; see "
			       "`scripts/host-firewall check`; " REPAIR);
	return 0;
}

static int read_boot_id(char id[static BOOT_ID_LEN + 1])
{
	AUTO_BUF struct buf text;
	struct err ignored;

	buf_init(&text, 4096);
	if (file_read(BOOT_ID_PATH, &text, NULL, &ignored) || text.len < BOOT_ID_LEN)
		return -1;
	memcpy(id, text.data, BOOT_ID_LEN);
	id[BOOT_ID_LEN] = '\0';
	return 0;
}

static int judge_file(struct err *err)
{
	AUTO_BUF struct buf text;
	char boot_id[BOOT_ID_LEN + 1];
	struct stat st;

	buf_init(&text, MAX_VERDICT_BYTES);
	if (file_read(FIREWALL_VERDICT_PATH, &text, &st, err))
		return err_set(err, ERR_SYSTEM, "the host's firewall was never checked; " REPAIR);
	if (st.st_uid || st.st_mode & 022)
		return err_set(err, ERR_SYSTEM,
			       FIREWALL_VERDICT_PATH " is not root's alone; " REPAIR);
	if (read_boot_id(boot_id))
		return err_set(err, ERR_SYSTEM, "this boot has no id; " REPAIR);
	return firewall_judge(text.data, text.len, boot_id, clock_system(), err);
}

/* Beside the program, installed, or in the tree that it was built in. The caller's, or NULL. */
static char *find_script(void)
{
	static const char *const places[] = {
		"host-firewall",
		"../libexec/postern/host-firewall",
		"../../scripts/host-firewall",
	};
	char self[PATH_MAX];

	const ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n <= 0)
		return NULL;
	self[n] = '\0';
	*(strrchr(self, '/') + 1) = '\0';
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		AUTO_FREE char *path = xasprintf("%s%s", self, places[i]);
		if (!access(path, X_OK))
			return TAKE(path);
	}
	return NULL;
}

struct check {
	bool done;
	bool good;
};

static void on_checked(void *ctx, const struct child_result *result)
{
	struct check *const check = ctx;

	check->done = true;
	check->good = result->end == CHILD_EXITED && !result->status;
}

static int check_now(struct loop *loop, struct err *err)
{
	static char path_variable[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
	static char word[] = "check";
	AUTO_FREE char *script = find_script();
	char *args[] = {script, word};
	char *variables[] = {path_variable};
	const struct strv argv = {args, ARRAY_LEN(args)};
	const struct strv env = {variables, ARRAY_LEN(variables)};
	const struct child_request request = {
		.argv = &argv,
		.env = &env,
		.max_output_bytes = MAX_VERDICT_BYTES,
		.timeout_ms = CHECK_TIMEOUT_MS,
	};
	struct check check = {0};

	if (!script)
		return -1;
	struct child *const child = child_start(loop, &request, on_checked, &check);
	while (!check.done)
		if (loop_turn(loop, err)) {
			child_cancel(child);
			return -1;
		}
	return check.good ? 0 : -1;
}

int firewall_verified(struct loop *loop, struct err *err)
{
	struct err ignored;

	if (!judge_file(err))
		return 0;
	return geteuid() ? -1 : check_now(loop, &ignored);
}
