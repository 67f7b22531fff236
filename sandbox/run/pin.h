/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out the addresses of a container that is being started by somebody else: beside it, so that the
 * agent does not wait for us.
 */
#pragma once

#include "broker/base/compiler.h"

#include <jansson.h>

struct engine;
struct loop;
struct pin;

/* A container that runs so long without an address gets none. */
#define PIN_TIMEOUT_MS 10000

enum pin_state {
	PIN_WAITING, /* no container yet, or it has no address yet */
	PIN_FOUND,
	PIN_LATE, /* it runs, and has had no address for PIN_TIMEOUT_MS */
};

/* Borrows all three. */
NODISCARD struct pin *pin_new(struct loop *loop, const struct engine *engine, const char *cidfile);
/* NULL is fine. */
void pin_free(struct pin *pin);

enum pin_state pin_state(const struct pin *pin);
/* Strings, when found. Borrowed. */
json_t *pin_addresses(const struct pin *pin);
