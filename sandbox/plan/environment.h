/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which variables cross into a sandbox, which never do, and which are taken out of it; and what the
 * engine's own process gets to see.
 */
#pragma once

#include "broker/base/compiler.h"
#include "sandbox/plan/engine_kind.h"
#include "sandbox/plan/variables.h"

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct caller;
struct run_options;
struct strv;

enum environment_verdict {
	ENVIRONMENT_CROSSES, /* where it is asked for */
	ENVIRONMENT_DENIED,  /* by name or prefix; --env-force lifts it */
	ENVIRONMENT_SESSION, /* the session's own: nothing lifts it */
	ENVIRONMENT_OWN,     /* the launcher's or the engine client's own: nothing lifts it */
};

enum environment_verdict environment_judge(const char *name);

/* The i-th name that a session of the broker sets as a rule; NULL behind the last. */
const char *environment_session_name(size_t i);

/*
 * Adds what of --env and --env-force crosses, with the caller's values. Names that may not go to `refused`,
 * names that the caller does not have to `absent`.
 */
void environment_cross(const struct run_options *options, const struct caller *caller,
		       struct variables *container, struct strv *refused, struct strv *absent);

/* Adds a VARIABLE_UNSET for each forced one that does not cross. */
void environment_unset(struct variables *container);

/*
 * The environment of the engine's process without what crosses: `home` and `config` are HOME and
 * DOCKER_CONFIG of docker; podman keeps the caller's own HOME and runtime directory.
 */
void environment_client(enum engine_kind kind, const struct caller *caller, const char *home,
			const char *config, struct variables *client);

/*
 * Sets NO_PROXY and no_proxy to what they hold and `hosts` behind it, each host once. Where only one of
 * the two is there, it is the start of both. May be called again with more hosts.
 */
void environment_no_proxy(struct variables *container, const struct strv *hosts,
			  enum variable_source source);

/* "3 variables refused: A, B, C", no newline. Adds nothing where there are none. */
void environment_refused(const struct strv *refused, struct buf *out);
