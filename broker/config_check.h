/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be told only of the configuration as a whole: keys that need or forbid each other.
 */
#pragma once

#include "broker/base/compiler.h"

struct config;
struct config_reader;

/*
 * Checks it, and shrinks refresh margins to a third of the lifetime, with a warning in the log.
 * Refusals name the line of the key to change.
 */
NODISCARD int config_check(const struct config_reader *reader, struct config *config);
