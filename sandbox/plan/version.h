/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Version numbers of engines and kernels, as they are written.
 */
#pragma once

#include <stdbool.h>

/* Whether "4.3.1", "4.7.0-dev" or "6.1.0-13-amd64" is at least major.minor; one that is not known is. */
bool version_is_at_least(const char *version, unsigned long major, unsigned long minor);
