/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of an engine's own options a caller may pass on, and which are refused by name because they
 * would open the sandbox.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stdbool.h>

struct err;
struct strv;

/*
 * One --engine-arg: "--name=value" with a name that is allowed. ERR_UNSUPPORTED: a name that is refused
 * for good; ERR_USAGE: any other.
 */
NODISCARD int engine_arg_check(const char *arg, struct err *err);

/* Whom an argument is for, where the sandbox joins the network of a container that was made before it. */
enum engine_arg_target {
	ENGINE_ARG_SANDBOX,
	ENGINE_ARG_NETWORK, /* whoever has the network */
	ENGINE_ARG_IMAGE,   /* both, as both have the image */
	ENGINE_ARG_PULL,    /* whoever fetches the image */
};

/* Of a checked one. */
enum engine_arg_target engine_arg_target(const char *arg);

/* The value of the last --name=… among checked ones, or NULL. Borrowed. */
const char *engine_arg_value(const struct strv *args, const char *name);

/* Why an engine's option may not be given ("--privileged"); NULL: nothing is known of it. */
const char *engine_option_refusal(const char *flag);
