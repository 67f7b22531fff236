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
#define CLOUD "cloud credentials"
#define LOGIN "login credentials"

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
	{".kube", TREE, "cluster credentials; use --kubeconfig FILE"},
	{".docker", TREE, LOGIN},
	{".config/containers", TREE, LOGIN},
	{".local/share/containers", TREE, ENGINE_DATA},
	{".ssh", TREE, LOGIN},
	{".gnupg", TREE, LOGIN},
	{".netrc", TREE, LOGIN},
	{".git-credentials", TREE, LOGIN},
	{".config/gh", TREE, LOGIN},
};

/* Absolute paths that the caller's variables name. */
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

/* Whether the source is, holds or (TREE) lies in the rule's path, as written and as it resolves. */
static bool touches(const char *src, const char *path, enum reach reach)
{
	AUTO_FREE char *real = realpath(path, NULL);
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

static int check_rules(const char *src, const char *home, const char *what, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		const struct rule *const rule = &rules[i];
		AUTO_FREE char *path = NULL;
		if (*rule->path == '/')
			path = xstrdup(rule->path);
		else if (home)
			path = path_join(home, rule->path);
		if (path && touches(src, path, rule->reach))
			return refuse(what, src, path, rule->what, err);
	}
	return 0;
}

static int check_named(const char *src, const struct mount_guard *guard, const char *what,
		       struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(named); i++) {
		const char *const path = caller_nonblank(guard->caller, named[i].variable);
		if (path && *path == '/' && touches(src, path, TREE))
			return refuse(what, src, path, named[i].what, err);
	}
	if (!guard->control)
		return 0;
	if (touches(src, guard->control, TREE))
		return refuse(what, src, guard->control, "the broker's control socket", err);
	AUTO_FREE char *attach = path_beside(guard->control, "private");
	if (touches(src, attach, TREE))
		return refuse(what, src, attach, "where doors attach to the broker", err);
	return 0;
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
	if (check_kind(real, what, err) || check_rules(real, guard->caller->home, what, err) ||
	    check_rules(real, caller_nonblank(guard->caller, "HOME"), what, err) ||
	    check_named(real, guard, what, err))
		return -1;
	if (socket_find_engines(real, guard, &socket))
		return refuse(what, real, socket, "an engine's socket", err);
	*canonical = TAKE(real);
	return 0;
}
