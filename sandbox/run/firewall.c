/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/run/firewall.h"

#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/base/clock.h"
#include "broker/base/err.h"
#include "broker/base/file.h"
#include "broker/base/json.h"
#include "broker/base/log.h"
#include "broker/base/strv.h"
#include "broker/net/child.h"
#include "broker/net/loop.h"
#include "sandbox/plan/paths.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INSTALLED POSTERN_LIBEXECDIR "/postern/host-firewall"
#define BOOT_ID_PATH "/proc/sys/kernel/random/boot_id"
#define BOOT_ID_LEN 36
#define CHECK_TIMEOUT_MS 30000
#define MAX_VERDICT_BYTES 65536

/* In the tree that this program was built in, or installed. The caller's, or NULL. */
static char *find_script(void)
{
	static const char *const beside[] = {
		"../../scripts/host-firewall",
		"../../../scripts/host-firewall",
	};
	char self[PATH_MAX];

	const ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n <= 0)
		return NULL;
	self[n] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(beside); i++) {
		AUTO_FREE char *path = path_beside(self, beside[i]);
		AUTO_FREE char *real = realpath(path, NULL);
		if (real && !access(real, X_OK))
			return TAKE(real);
	}
	return access(INSTALLED, X_OK) ? NULL : xstrdup(INSTALLED);
}

static int refuse(struct err *err, const char *what)
{
	AUTO_FREE char *script = find_script();

	return err_set(err, ERR_SYSTEM,
		       "%s; run `%s install` as root, or take the risk with "
		       "--allow-unverified-firewall",
		       what, script ? script : "scripts/host-firewall");
}

/* What was written counts for this boot and for as long as the timer may be late. */
static int judge(const struct firewall_verdict *verdict, const struct buf *text, struct err *err)
{
	json_auto_t *json = json_read_object(text->data, text->len);
	const char *const boot_id = json_get_string(json, "boot_id");
	const json_t *const time_s = json_object_get(json, "time");
	struct quoted q;

	if (!boot_id || !json_is_integer(time_s))
		return refuse(err, "what is known of the host's firewall is no verdict");
	if (strcmp(boot_id, verdict->boot_id) != 0)
		return refuse(err, "the host's firewall was not checked since it started");
	const int64_t age_s = clock_wall_ms(verdict->clock) / 1000 - json_integer_value(time_s);
	if (age_s < 0 || age_s >= FIREWALL_VERDICT_MAX_AGE_S)
		return refuse(err, "the host's firewall was not checked in the last 3 minutes");
	if (json_is_true(json_object_get(json, "ok")))
		return 0;
	AUTO_FREE char *what = xasprintf(
		"sandboxes may reach the host's metadata server (%s): the same with `check` says why",
		quote_str(&q, json_get_string(json, "verdict")));
	return refuse(err, what);
}

int firewall_read_verdict(const struct firewall_verdict *verdict, struct err *err)
{
	AUTO_BUF struct buf text;
	struct stat link;
	struct stat st;
	struct err ignored;

	buf_init(&text, MAX_VERDICT_BYTES);
	if (lstat(verdict->path, &link) && errno == ENOENT)
		return refuse(err, "the host's firewall was never checked");
	if (file_read(verdict->path, &text, &st, &ignored))
		return refuse(err, "what is known of the host's firewall cannot be read");
	/* A link, also a hard one, could make another file of the owner's a verdict. */
	if (!S_ISREG(link.st_mode) || link.st_ino != st.st_ino || st.st_nlink != 1 ||
	    st.st_uid != verdict->owner || st.st_mode & 022)
		return refuse(err, "what is known of the host's firewall others may have written");
	return judge(verdict, &text, err);
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

struct check {
	bool done;
	int result;
	struct err *err;
};

static void on_checked(void *ctx, const struct child_result *result)
{
	struct check *const check = ctx;

	check->done = true;
	check->result = result->end == CHILD_EXITED && !result->status ? 0 : -1;
	/* The script's lines hold rules' names and its own path. */
	if (check->result && result->end == CHILD_EXITED && result->errors_len)
		(void)err_set(check->err, ERR_SYSTEM, "%.*s; or --allow-unverified-firewall",
			      (int)strcspn(result->errors, "\n"), result->errors);
	else if (check->result)
		(void)refuse(check->err, "the host's firewall cannot be checked");
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
	struct check check = {.err = err};

	if (!script)
		return -1;
	struct child *const child = child_start(loop, &request, on_checked, &check);
	while (!check.done)
		if (loop_turn(loop, err)) {
			child_cancel(child);
			return -1;
		}
	return check.result;
}

int firewall_verified(struct loop *loop, struct err *err)
{
	char boot_id[BOOT_ID_LEN + 1];

	if (read_boot_id(boot_id))
		return refuse(err, "this boot has no id");
	const struct firewall_verdict verdict = {
		.path = FIREWALL_VERDICT_PATH,
		.owner = 0,
		.boot_id = boot_id,
		.clock = clock_system(),
	};
	struct err from_file = {0};
	if (!firewall_read_verdict(&verdict, &from_file))
		return 0;
	*err = from_file;
	return geteuid() ? -1 : check_now(loop, err);
}
