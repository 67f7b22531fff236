/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the host's rules keep sandboxes from the cloud's own metadata server: by the verdict that the
 * host's timer writes, since reading rules needs root. No packet is sent.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stddef.h>

struct clock;
struct err;
struct loop;

/* What `host-firewall` writes, and how old it may be. */
#define FIREWALL_VERDICT_PATH "/run/postern/firewall.json"
#define FIREWALL_VERDICT_MAX_AGE_S 180

/* 0, or -1 with what to do: by the verdict, else (root) by checking now. */
NODISCARD int firewall_verified(struct loop *loop, struct err *err);

/* Reads a verdict; boot_id is this boot's. */
NODISCARD int firewall_judge(const char *bytes, size_t len, const char *boot_id,
			     const struct clock *clock, struct err *err);
