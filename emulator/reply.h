/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The refusals, and the types of what is answered. The replies of `token` are here too, declared in
 * emulator.h.
 */
#pragma once

#include "emulator/emulator.h"

/* The Content-Type of a value, a listing, and of JSON: bare, for a charset breaks gcloud. */
extern const char reply_type_text[];
extern const char reply_type_json[];

/* The whole reply of a refusal. EMULATOR_REFUSAL_NONE has none. */
const struct emulator_reply *reply_refusal(enum emulator_refusal refusal);
