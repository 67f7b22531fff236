/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the launcher says to the person who started it.
 */
#pragma once

#include "broker/base/compiler.h"

/* One line on standard error, "postern: text". Never a variable's value. */
void notice(const char *fmt, ...) PRINTF_LIKE(1, 2);
