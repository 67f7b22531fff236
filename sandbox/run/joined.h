/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the container that the engine has made for the sandbox is the one that was asked for: in the
 * door's network namespace, without rights over it.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stddef.h>

struct err;

/*
 * What `container inspect DOOR SANDBOX` has printed, and the door's full id. All that is looked at is
 * fixed when a container is made. ERR_INVALID names what is otherwise.
 */
NODISCARD int joined_check(const char *bytes, size_t len, const char *door_id, struct err *err);
