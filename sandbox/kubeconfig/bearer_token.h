/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bearer tokens of a Kubernetes API server: what is one, and when it ends.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

struct err;
struct secret;

#define BEARER_TOKEN_MAX_BYTES 65536

/* RFC 6750 section 2.1, loosely: printable ASCII without blanks, and not empty. */
bool bearer_token_is_one(const char *text);

/*
 * The file's token, blanks around it dropped as clients do. The file must be regular, at most 64 KiB
 * and no symlink. *why is a constant such as "is a symlink"; nothing names path or content.
 */
NODISCARD int bearer_token_read(const char *path, struct secret **out, const char **why);

/* The `exp` of a JWT (RFC 7519) in seconds since 1970. False where it is none, or has none. */
bool bearer_token_expiry(const char *token, int64_t *expires_wall_s);
