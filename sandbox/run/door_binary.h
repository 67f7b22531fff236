/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where postern-door is.
 */
#pragma once

#include "broker/base/compiler.h"

struct err;

/*
 * "door/postern-door" beside this process's own executable, as in a build tree, else the installed one. The
 * caller's. ERR_SYSTEM where it is in neither place.
 */
NODISCARD int door_binary_find(char **out, struct err *err);
