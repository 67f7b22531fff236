/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which engine runs the sandbox, and what was read from it before the plan is made.
 */
#pragma once

#include <stdbool.h>

enum engine_kind {
	ENGINE_DOCKER,
	ENGINE_PODMAN,
	ENGINE_NONE, /* no sandbox: the command runs as it is */
};

/* The word of --engine: "docker", "podman", "none". */
const char *engine_kind_name(enum engine_kind kind);

/* Filled by whoever asked the engine; texts are its own. */
struct engine_facts {
	enum engine_kind kind;
	const char *binary;  /* absolute, found in the caller's PATH */
	const char *version; /* of the server, "20.10.24"; NULL: not known */
	bool rootless;
	/*
	 * The host's address as containers reach it, for an engine that does not know "host-gateway"
	 * (podman before 4.7); NULL: not known.
	 */
	const char *host_address;
	bool image_is_here;
	const char *image_user;	    /* the image's USER; NULL: image not here or it has none */
	const char *kernel;	    /* of the engine's host, "6.1.0-13-amd64"; NULL: not known */
	const char *runtime;	    /* that containers get, "runc"; NULL: not known */
	const char *network_driver; /* of the network that was asked about; NULL: of none */
};
