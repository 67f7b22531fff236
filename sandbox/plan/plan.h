/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one run will do, typed and complete before anything starts: --dry-run prints it, run executes
 * it. Nothing crosses into the sandbox that is not in it.
 */
#pragma once

#include "broker/base/compiler.h"
#include "broker/base/strv.h"
#include "sandbox/plan/engine_kind.h"
#include "sandbox/plan/options.h"
#include "sandbox/plan/variables.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct buf;
struct caller;
struct err;
struct provider;

/* Where things are inside every sandbox. */
#define PLAN_WORKSPACE "/workspace"
#define PLAN_HOME "/workspace/home"
#define PLAN_CREDS "/creds"
#define PLAN_KUBECONFIG "/creds/kubeconfig"
/* What the sandbox calls its host. */
#define PLAN_HOST_ALIAS "host.docker.internal"
/* The names of the container's labels. */
#define PLAN_LABEL_OWNER "postern.owner"
#define PLAN_LABEL_RUN "postern.run"
#define PLAN_LABEL_SESSION "postern.session"
#define PLAN_LABEL_ROLE "postern.role" /* "door"; the sandbox itself has none */
#define PLAN_LABEL_LAUNCHER_PID "postern.launcher-pid"
#define PLAN_LABEL_LAUNCHER_START "postern.launcher-start"
#define PLAN_LABEL_LAUNCHER_NAMESPACE "postern.launcher-namespace"
/* Hex digits of a run's id. */
#define PLAN_RUN_ID_DIGITS 16

struct plan_mount {
	char *src; /* canonical */
	char *dst;
	bool ro;
	const char *why; /* "workspace", "kubeconfig", "--mount" */
};

/* Names the launcher's process, also after its end. */
struct plan_launcher {
	uint64_t pid;
	uint64_t start;		/* field 22 of /proc/PID/stat */
	uint64_t pid_namespace; /* inode of /proc/self/ns/pid: where the pid means something */
};

/* What the plan says of the session to open; run opens it. */
struct plan_session {
	bool wanted; /* false: a keyed run, no GCE_METADATA_* */
	char *profile;
	char *label;   /* what the broker calls it: the container's name */
	int64_t ttl_s; /* 0: the profile's own */
	char *id;      /* NULL until plan_bind_session() */
};

/* The container that opens the endpoint in the sandbox's own network namespace: --attach inside. */
struct plan_door {
	bool wanted; /* false: all of it is empty, the sandbox has a network of its own */
	char *name;
	char *cidfile;
	char *binary;	 /* postern-door, on the host */
	char *attach;	 /* directory of the broker's socket: expected, then plan_bind_attach()'s */
	char *directory; /* the run's, for the ticket alone */
	char *ticket;	 /* the file in it, there until the door has attached */
	struct strv shut;	 /* networks that the sandbox is kept from */
	struct strv nameservers; /* in those networks, whose port 53 stays open */
	struct strv flags;	 /* of the engine: network, names; and what is of the image */
	struct strv argv;	 /* makes it */
	char *id;		 /* NULL until plan_bind_door() */
};

struct plan {
	struct engine_facts engine; /* its texts are the plan's own here */
	char *run_id;
	char *name; /* postern-OWNER-RUNID: of the container */
	char *owner;
	char *directory; /* the run's own, 0700; the kubeconfig is in its creds/ */
	char *cidfile;
	/*
	 * NAME=value lines of what the engine's process needs otherwise itself (HOME): written 0600
	 * before the start. So no value is in an argument vector.
	 */
	char *env_file;
	char *env_file_text;
	char *client_config; /* docker's empty DOCKER_CONFIG, to be made 0700; NULL with podman */
	/*
	 * HOME's directory in the workspace, to be made where nothing is there: 0700 of home_uid and
	 * home_gid, or 01777 where these are -1, not known. What is there already is left as it is.
	 * NULL: none.
	 */
	char *home_to_make;
	uid_t home_uid;
	gid_t home_gid;
	struct plan_launcher launcher;
	const struct provider *provider; /* NULL: the profile's */
	char *agent;			 /* the preset's name; NULL: none */
	struct plan_session session;
	enum preflight preflight;
	enum attach attach;
	enum stdio stdio;
	int64_t timeout_s; /* 0: none */
	int64_t stop_s;	   /* so long the engine lets the command end by itself */
	char *user;	   /* "U:G", or the image's own */
	char *network;	   /* NULL: the engine's default */
	bool kubeconfig;
	bool allow_unverified_firewall;
	struct strv flags; /* of the engine, without name, labels, mounts and variables */
	struct plan_mount *mounts;
	size_t mount_count;
	struct variables container; /* cross, or are unset */
	struct variables client;    /* of the engine's process alone */
	struct strv no_proxy;	    /* hosts that NO_PROXY and no_proxy get */
	struct strv refused;	    /* names that --env asked for in vain */
	struct strv warnings;
	char *image;
	struct strv command;
	struct plan_door door;
	struct strv pull; /* fetches the image before the session opens; empty: need not be */
	struct strv argv; /* makes the container, and starts it where there is no door */
	/* With a door: starts the container that argv has made. */
	struct strv start_argv;
};

/* Whose runs these are: a user's name may hold what an owner may not. The caller's. */
char *plan_owner(const struct run_options *options, const struct caller *caller);

/* What a plan is made of. Borrowed during plan_new(). */
struct plan_inputs {
	const struct run_options *options;
	const struct caller *caller;
	const struct engine_facts *engine;
	/* The profile that the session is of, with what it says; NULL: a keyed run. */
	const char *profile;
	const char *project;
	const char *location;
	/* Host of the kubeconfig's server; NULL: no kubeconfig. */
	const char *api_server_host;
	const char *
		control; /* the broker's control socket, which no mount may hold; NULL: not known */
	/* Of a run with a door: its program, and the host's nameservers (NULL: none are known). */
	const char *door_binary;
	const struct strv *nameservers;
	const char *run_id;
	const char *directory; /* absolute; need not exist yet */
	struct plan_launcher launcher;
};

#define AUTO_PLAN CLEANUP(plan_free_p)

/*
 * Whether this run opens a session, from the options and the caller's variables alone: asked before
 * the broker is. *provider is the table's entry or NULL without --provider. ERR_USAGE: unknown
 * provider or preset; ERR_UNSUPPORTED: a keyless one without a recipe.
 */
NODISCARD int plan_wants_session(const struct run_options *options, const struct caller *caller,
				 bool *wanted, const struct provider **provider, struct err *err);

/* The caller's. ERR_USAGE means exit 2, ERR_INVALID and ERR_UNSUPPORTED 3. Makes and opens nothing. */
NODISCARD int plan_new(const struct plan_inputs *inputs, struct plan **out, struct err *err);
void plan_free(struct plan *plan);

static inline void plan_free_p(struct plan **plan)
{
	plan_free(*plan);
}

/*
 * Puts an open session in: its id as a label, its variables with their values. argv is made anew.
 * ERR_INVALID: the broker sent a variable that no session may set. May be called again.
 */
NODISCARD int plan_bind_session(struct plan *plan, const char *id, const struct variables *env,
				struct err *err);

/*
 * Puts in where the broker's attach socket is, and then the full id of the container that was made as the
 * door. ERR_INVALID: a directory that no engine can mount.
 */
NODISCARD int plan_bind_attach(struct plan *plan, const char *directory, struct err *err);
void plan_bind_door(struct plan *plan, const char *id);

/* The whole environment of the engine's process that makes the container, with values. */
void plan_run_environ(const struct plan *plan, struct environ_block *out);
/* The same for every other call of the engine: nothing that crosses is in it. */
void plan_engine_environ(const struct plan *plan, struct environ_block *out);

/* What --dry-run prints. Never a value. The buffer has room for 64 MiB: a command may be long. */
void plan_print(const struct plan *plan, struct buf *out);
/* The same as one JSON object with a newline. */
void plan_print_json(const struct plan *plan, struct buf *out);

/* "3 variables refused: A, B, C" without a newline; nothing where there are none. */
void plan_print_refused(const struct plan *plan, struct buf *out);
