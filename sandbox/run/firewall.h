/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the host's rules keep sandboxes from the cloud's own metadata server: by the verdict that the
 * host's timer writes, since reading rules needs root. No packet is sent.
 */
#pragma once

#include "broker/base/compiler.h"

#include <sys/types.h>

struct clock;
struct err;
struct loop;

/* What `host-firewall` writes, and how old it may be. */
#define FIREWALL_VERDICT_PATH "/run/postern/firewall.json"
#define FIREWALL_VERDICT_MAX_AGE_S 180

/* 0, or -1 with what to do: by the verdict, else (root) by checking now. */
NODISCARD int firewall_verified(struct loop *loop, struct err *err);

/* A written verdict, and what makes it count. */
struct firewall_verdict {
	const char *path;
	uid_t owner; /* nobody else may write it */
	const char *boot_id;
	const struct clock *clock;
};

/* 0 where it is good and counts, else -1 with what to do. */
NODISCARD int firewall_read_verdict(const struct firewall_verdict *verdict, struct err *err);
