/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a request must be before its path is looked at.
 */
#pragma once

#include "emulator/emulator.h"

/* The first guard that refuses, in the contract's order, or EMULATOR_REFUSAL_NONE. */
enum emulator_refusal guards_check(const struct emulator_request *request,
				   const char *advertised_host);
