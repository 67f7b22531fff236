/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/plan/mounts.h"

#include "broker/base/alloc.h"
#include "broker/base/err.h"
#include "broker/base/log.h"
#include "sandbox/plan/caller.h"
#include "sandbox/plan/paths.h"
#include "sandbox/plan/sockets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum reach {
	ITSELF, /* and what holds it; what lies in it may cross */
	TREE,	/* and what holds it, and all that lies in it */
};

struct rule {
	const char *path; /* below the home directory where it does not begin with "/" */
	enum reach reach;
	const char *what;
};

#define KERNEL "the kernel's own"
#define RUNTIME "where the host's sockets are"
#define ENGINE_DATA "an engine's own data"
#define CLUSTER "cluster credentials; use --kubeconfig FILE"
/* Compared by their address: see mount_is_login(). */
static const char CLOUD[] = "cloud credentials";
static const char LOGIN[] = "login credentials";

static const struct rule rules[] = {
	{"/proc", TREE, KERNEL},
	{"/sys", TREE, KERNEL},
	{"/dev", TREE, "devices"},
	{"/boot", TREE, "the system's own"},
	{"/etc", ITSELF, "the system's own"},
	{"/etc/postern", TREE, "the broker's own configuration"},
	{"/etc/kubernetes", TREE, "cluster credentials"},
	{"/run", TREE, RUNTIME},
	{"/var/run", TREE, RUNTIME},
	{"/var/lib/docker", TREE, ENGINE_DATA},
	{"/var/lib/containerd", TREE, ENGINE_DATA},
	{"/var/lib/containers", TREE, ENGINE_DATA},
	{"/var/lib/kubelet", TREE, ENGINE_DATA},
	{"/var/log/postern", TREE, "the broker's audit trail"},
	{"/home", ITSELF, "home directories"},
	{"/root", ITSELF, "a home directory"},
	{"", ITSELF, "your home directory"},
	{".config/gcloud", TREE, CLOUD},
	{".aws", TREE, CLOUD},
	{".azure", TREE, CLOUD},
	{".kube", TREE, CLUSTER},
	{".docker", TREE, LOGIN},
	{".config/containers", TREE, LOGIN},
	{".local/share/containers", TREE, ENGINE_DATA},
	{".ssh", TREE, LOGIN},
	{".gnupg", TREE, LOGIN},
	{".netrc", TREE, LOGIN},
	{".git-credentials", TREE, LOGIN},
	{".config/gh", TREE, LOGIN},
};

/* Paths that the caller's variables name, as their users read them: from the working directory. */
static const struct {
	const char *variable;
	const char *what;
} named[] = {
	{"GOOGLE_APPLICATION_CREDENTIALS", CLOUD},
	{"CLOUDSDK_CONFIG", CLOUD},
	{"XDG_RUNTIME_DIR", RUNTIME},
	{"DOCKER_CONFIG", LOGIN},
	{"SSH_AUTH_SOCK", LOGIN},
};

/* Inside; nothing may be mounted over, into or around these. */
static const char *const reserved[] = {"/creds", "/proc", "/sys", "/dev"};

void mount_request_deinit(struct mount_request *request)
{
	free(request->src);
	free(request->dst);
	*request = (struct mount_request){0};
}

static int check_destination(const char *dst, struct err *err)
{
	struct quoted q;

	if (!path_is_normal(dst) || !path_is_writable_in_options(dst))
		return err_set(err, ERR_USAGE,
			       "--mount: destination %s: must be an absolute path without //, . "
			       "and .. in it, commas and quotes",
			       quote_str(&q, dst));
	for (size_t i = 0; i < ARRAY_LEN(reserved); i++)
		if (path_is_within(dst, reserved[i]))
			return err_set(err, ERR_UNSUPPORTED,
				       "--mount: destination %s: %s is the sandbox's own; choose "
				       "another",
				       quote_str(&q, dst), reserved[i]);
	return 0;
}

int mount_parse(const char *text, struct mount_request *out, struct err *err)
{
	const char *const colon = strchr(text, ':');
	const char *const second = colon ? strchr(colon + 1, ':') : NULL;
	struct quoted q;

	if (!colon || colon == text || !colon[1] || (second && strcmp(second, ":ro") != 0))
		return err_set(err, ERR_USAGE, "--mount %s: must be SRC:DST or SRC:DST:ro",
			       quote_str(&q, text));
	AUTO_FREE char *dst = second ? xstrndup(colon + 1, (size_t)(second - colon - 1)) :
				       xstrdup(colon + 1);
	if (check_destination(dst, err))
		return -1;
	*out = (struct mount_request){
		.src = xstrndup(text, (size_t)(colon - text)),
		.dst = TAKE(dst),
		.ro = second != NULL,
	};
	return 0;
}

/*
 * As the kernel would find it; of what is not there yet, where it would be. NULL: not even that is known. The
 * caller's.
 */
static char *resolve(const char *path)
{
	char *const real = realpath(path, NULL);
	const char *const slash = strrchr(path, '/');

	if (real || errno != ENOENT || !slash || slash == path)
		return real;
	AUTO_FREE char *parent = path_parent(path);
	AUTO_FREE char *there = realpath(parent, NULL);
	return there ? path_join(there, slash + 1) : NULL;
}

/* Whether the source is, holds or (TREE) lies in the rule's path, as written and as it resolves. */
static bool touches(const char *src, const char *path, enum reach reach)
{
	AUTO_FREE char *real = resolve(path);
	const char *const forms[] = {path, real};

	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		if (!forms[i])
			continue;
		if (path_is_within(forms[i], src) ||
		    (reach == TREE && path_is_within(src, forms[i])))
			return true;
	}
	return false;
}

/* What the source touches and why that may not cross. */
struct finding {
	const char *why; /* NULL: nothing */
	char *path;
};

static void find_by_rules(const char *src, const char *home, struct finding *found)
{
	for (size_t i = 0; i < ARRAY_LEN(rules) && !found->why; i++) {
		const struct rule *const rule = &rules[i];
		AUTO_FREE char *path = NULL;
		if (*rule->path == '/')
			path = xstrdup(rule->path);
		else if (home)
			path = path_join(home, rule->path);
		if (path && touches(src, path, rule->reach))
			*found = (struct finding){rule->what, TAKE(path)};
	}
}

static void find_by_path(const char *src, const char *path, const char *why, struct finding *found)
{
	if (path && !found->why && touches(src, path, TREE))
		*found = (struct finding){why, xstrdup(path)};
}

/* Of paths with colons between. */
static void find_by_list(const char *src, const char *list, const char *why, struct finding *found)
{
	while (*list) {
		const size_t len = strcspn(list, ":");
		AUTO_FREE char *path = xstrndup(list, len);
		if (len)
			find_by_path(src, path, why, found);
		list += len + (list[len] == ':');
	}
}

static void find_by_variables(const char *src, const struct caller *caller, struct finding *found)
{
	for (size_t i = 0; i < ARRAY_LEN(named); i++) {
		const char *const value = caller_nonblank(caller, named[i].variable);
		find_by_path(src, value, named[i].what, found);
	}
	const char *const kubeconfigs = caller_nonblank(caller, "KUBECONFIG");
	if (kubeconfigs)
		find_by_list(src, kubeconfigs, CLUSTER, found);
}

/* What is the caller's own, by where such things are and by what its variables say. */
static void find_of_caller(const char *src, const struct caller *caller, struct finding *found)
{
	find_by_rules(src, caller->home, found);
	find_by_rules(src, caller_nonblank(caller, "HOME"), found);
	if (caller->sudo_home)
		find_by_rules(src, caller->sudo_home, found);
	find_by_variables(src, caller, found);
}

static void find_of_run(const char *src, const struct mount_guard *guard, struct finding *found)
{
	AUTO_FREE char *attach = guard->control ? path_beside(guard->control, "private") : NULL;

	find_by_path(src, guard->control, "the broker's control socket", found);
	find_by_path(src, attach, "where doors attach to the broker", found);
	find_by_path(src, guard->kubeconfig, "the kubeconfig, of which one context crosses", found);
	find_by_path(src, guard->runs, "where runs keep their own files", found);
}

static int refuse(const char *what, const char *src, const char *path, const char *why,
		  struct err *err)
{
	struct quoted q;
	struct quoted q_path;

	return err_set(err, ERR_UNSUPPORTED,
		       "%s %s is refused: it is, holds or lies in %s (%s), which may not cross; "
		       "mount something narrower",
		       what, quote_str(&q, src), quote_str(&q_path, path), why);
}

static int check_place(const char *src, const struct mount_guard *guard, const char *what,
		       struct err *err)
{
	struct finding found = {0};

	find_of_caller(src, guard->caller, &found);
	find_of_run(src, guard, &found);
	if (!found.why)
		return 0;
	(void)refuse(what, src, found.path, found.why, err);
	free(found.path);
	return -1;
}

bool mount_is_login(const char *path, const struct mount_guard *guard)
{
	AUTO_FREE char *real = realpath(path, NULL);
	struct finding found = {0};

	if (!real)
		return false;
	find_of_caller(real, guard->caller, &found);
	free(found.path);
	return found.why == CLOUD || found.why == LOGIN;
}

static const char *kind_of(mode_t mode)
{
	if (S_ISDIR(mode) || S_ISREG(mode))
		return NULL;
	if (S_ISSOCK(mode))
		return "a socket";
	if (S_ISFIFO(mode))
		return "a pipe";
	return "a device";
}

static int check_kind(const char *canonical, const char *what, struct err *err)
{
	struct quoted q;
	struct stat st;

	if (stat(canonical, &st))
		return err_set_errno(err, errno, "%s %s", what, quote_str(&q, canonical));
	const char *const kind = kind_of(st.st_mode);
	if (!kind)
		return 0;
	return err_set(err, ERR_UNSUPPORTED,
		       "%s %s is refused: it is %s%s; only files and "
		       "directories cross",
		       what, quote_str(&q, canonical),
		       S_ISSOCK(st.st_mode) && socket_is_engines(canonical) ?
			       "an engine's socket, " :
			       "",
		       kind);
}

int mount_check_source(const char *src, const struct mount_guard *guard, const char *what,
		       char **canonical, struct err *err)
{
	AUTO_FREE char *real = realpath(src, NULL);
	AUTO_FREE char *socket = NULL;
	struct quoted q;

	if (!real)
		return err_set_errno(err, errno, "%s %s", what, quote_str(&q, src));
	if (!path_is_writable_in_options(real))
		return err_set(
			err, ERR_INVALID,
			"%s %s: engines cannot be told a path with commas, quotes or control "
			"characters; rename it",
			what, quote_str(&q, real));
	if (check_kind(real, what, err) || check_place(real, guard, what, err))
		return -1;
	if (socket_find_engines(real, guard, &socket))
		return refuse(what, real, socket, "an engine's socket", err);
	*canonical = TAKE(real);
	return 0;
}
