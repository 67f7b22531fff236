/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the broker says of its own state: /v1/status and /metrics.
 */
#pragma once

#include "broker/base/compiler.h"

#include <jansson.h>

struct broker;
struct buf;

/* The object of the contract, section 7. The caller's reference. */
NODISCARD json_t *status_json(const struct broker *broker);

/* The metrics of the contract, section 9, in Prometheus' text format. */
void status_metrics(const struct broker *broker, struct buf *out);
