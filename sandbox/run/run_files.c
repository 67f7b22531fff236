/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/run/run_files.h"

#include "broker/base/alloc.h"
#include "broker/base/err.h"
#include "broker/base/secret.h"
#include "sandbox/kubeconfig/kubeconfig.h"
#include "sandbox/plan/plan.h"
#include "sandbox/run/run.h"
#include "sandbox/run/token_follow.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static int write_kubeconfig(struct run_files *files, const struct run_inputs *inputs,
			    struct err *err)
{
	const struct kubeconfig *const kubeconfig = inputs->kubeconfig;

	if (!kubeconfig)
		return 0;
	AUTO_FREE char *creds = xasprintf("%s/" RUN_DIR_CREDS, files->dir.path);
	AUTO_FREE char *path = xasprintf("%s/kubeconfig", creds);
	if (run_dir_write(path, 0644, secret_bytes(kubeconfig->json), secret_len(kubeconfig->json),
			  err))
		return -1;
	return token_follow_new(inputs->loop, kubeconfig, creds, &files->tokens, err);
}

/* One whose user is not known is everybody's, as /tmp is. */
static int give_home(const struct plan *plan, int fd)
{
	if (plan->home_uid == (uid_t)-1)
		return fchmod(fd, 01777);
	if (plan->home_uid == geteuid())
		return 0;
	return fchown(fd, plan->home_uid, plan->home_gid);
}

/*
 * The home of the sandbox's user, in the workspace. One that is there stays as it is: it may be an agent's
 * of an earlier run, and where a link of its making leads is not ours to change.
 */
static int make_home(const struct plan *plan, struct err *err)
{
	const char *const path = plan->home_to_make;

	if (!path || (mkdir(path, 0700) && errno == EEXIST))
		return 0;
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || give_home(plan, fd))
		return err_set_errno(err, errno, "cannot make %s for the sandbox's user", path);
	return 0;
}

static int make_all(struct run_files *files, const struct run_inputs *inputs, struct err *err)
{
	const struct plan *const plan = inputs->plan;

	if (run_dir_make(&files->dir, inputs->base, plan->run_id, err))
		return -1;
	if (plan->client_config && run_dir_make_folder(plan->client_config, 0700, err))
		return -1;
	if (plan->env_file && run_dir_write(plan->env_file, 0600, plan->env_file_text,
					    strlen(plan->env_file_text), err))
		return -1;
	if (plan->door.wanted && run_dir_make_folder(plan->door.directory, 0755, err))
		return -1;
	return write_kubeconfig(files, inputs, err) || make_home(plan, err) ? -1 : 0;
}

int run_files_make(struct run_files *files, const struct run_inputs *inputs, struct err *err)
{
	*files = (struct run_files){.dir = {.lock = -1}};
	if (!make_all(files, inputs, err))
		return 0;
	run_files_remove(files);
	return -1;
}

void run_files_remove(struct run_files *files)
{
	token_follow_free(TAKE(files->tokens));
	run_dir_remove(&files->dir);
}
