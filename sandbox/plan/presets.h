/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each agent wants to be told to find its model without a key: a table, one line a variable. Routing
 * (project, location) is no credential and is set for keyed runs too.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stdbool.h>
#include <stddef.h>

struct caller;
struct err;
struct preset;
struct strv;
struct variables;

/* Stands where an agent insists on a key and must be told that there is none. It is no credential. */
#define PRESET_KEY_MARKER "gcp-vertex-credentials"

/* What a preset's variables depend on. */
struct routing {
	const char *project;  /* NULL: not known */
	const char *location; /* never NULL */
	bool hosted;	      /* the model is the cloud's, by a session or by a key */
	bool session;	      /* by a session */
};

/* Borrowed, static. ERR_USAGE: unknown. */
NODISCARD int preset_find(const char *name, const struct preset **out, struct err *err);
/* The table in order; NULL behind the last. */
const char *preset_name_at(size_t i);
const char *preset_title_at(size_t i);

/*
 * Adds the preset's variables. What is in `out` already and not blank is the caller's own and stays; so
 * the caller's variables go in first.
 */
void preset_apply(const struct preset *preset, const struct routing *routing,
		  struct variables *out);

/*
 * Where the models are: GOOGLE_CLOUD_LOCATION, GCP_VERTEX_LOCATION, the profile's, "global"; blank is
 * unset. GCP_LOCATION is a zone and is never read. The caller's to free.
 */
char *routing_location(const struct caller *caller, const char *of_profile);

/*
 * The profile's project; without one (a keyed run) the caller's, NULL where it names none. The caller's to
 * free. ERR_INVALID: a variable of the caller names another project than the profile; only those in `names`
 * are looked at, all of them where it is NULL.
 */
NODISCARD int routing_project(const struct caller *caller, const char *of_profile,
			      const struct strv *names, char **out, struct err *err);
