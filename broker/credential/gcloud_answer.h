/* SPDX-License-Identifier: Apache-2.0 */
/* What `gcloud config config-helper --format=json` prints. */
#pragma once

#include "broker/base/compiler.h"

#include <stddef.h>
#include <stdint.h>

struct secret;

#define GCLOUD_BY_HAND "run `gcloud config config-helper` by hand as the broker's user"

/* The caller's. */
struct gcloud_answer {
	struct secret *token;
	int64_t expires_wall_ms; /* by this host's clock */
	char *account; /* the e-mail address of who is logged in; NULL where it does not say */
};

/* NULL and the answer, from any bytes; or what is wrong with them and what to do, for the operator. */
NODISCARD const char *gcloud_answer_read(const char *bytes, size_t len, struct gcloud_answer *out);
