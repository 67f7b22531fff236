/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may speak to an endpoint: the networks of its profile, or, once it is pinned, the sandbox's own
 * addresses and nobody else.
 */
#pragma once

#include "broker/base/compiler.h"
#include "broker/net/address.h"

#include <stdbool.h>
#include <stddef.h>

struct bridges;
struct peers_config;

#define ADMISSION_MAX_ADDRESSES 8

enum pin {
	PIN_NONE,     /* never pinned: a standing endpoint */
	PIN_LAUNCHER, /* by whoever opened the session; until then requests wait */
	PIN_FIRST,    /* the first peer that speaks */
};

enum admission_verdict {
	ADMISSION_YES,
	ADMISSION_NO,
	ADMISSION_LATER, /* it is not pinned yet */
};

struct admission {
	enum pin pin;
	bool loopback; /* the endpoint listens there */
	bool inside;   /* in a sandbox's own namespace: who is not of it does not get this far */
	struct address addresses[ADMISSION_MAX_ADDRESSES];
	size_t count; /* > 0: pinned */
};

/* "launcher" or "first"; NULL for PIN_NONE. */
const char *pin_name(enum pin pin);

enum admission_verdict admission_judge(const struct admission *admission,
				       const struct peers_config *peers, struct bridges *bridges,
				       const struct address *peer);

/*
 * A peer that was admitted has spoken well: with PIN_FIRST and no pin yet it becomes the pin. True where
 * it did. One of the host's own addresses does not, unless the endpoint is on loopback.
 */
bool admission_spoken(struct admission *admission, struct bridges *bridges,
		      const struct address *peer);

/* True where an address may be pinned at all: unicast, and not the host's own unless on loopback. */
bool admission_may_pin(const struct admission *admission, struct bridges *bridges,
		       const struct address *address);
/* True where the list is what is pinned, in any order. */
bool admission_is_pinned_to(const struct admission *admission, const struct address *addresses,
			    size_t count);
/* Pins; at most ADMISSION_MAX_ADDRESSES. */
void admission_pin(struct admission *admission, const struct address *addresses, size_t count);
