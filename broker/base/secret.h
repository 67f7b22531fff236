/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A token, key, assertion or refresh token. Shared by reference, cleared when the last one goes, and
 * named in logs by a hash only. This is the one place besides the JWT signer that uses OpenSSL.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct secret;

/* Hex digits of a fingerprint, with the NUL. */
#define SECRET_FINGERPRINT_SIZE 17

#define AUTO_SECRET CLEANUP(secret_unref_p)

/* A copy of the bytes. The caller's reference. */
NODISCARD struct secret *secret_new(const void *bytes, size_t len);
/* The same of a sensitive buffer, which is emptied and cleared. */
NODISCARD struct secret *secret_take_buf(struct buf *buf);
NODISCARD struct secret *secret_ref(struct secret *secret);
/* NULL is fine. Clears the bytes with the last reference. */
void secret_unref(struct secret *secret);

/* NUL-terminated; borrowed. */
const char *secret_bytes(const struct secret *secret);
size_t secret_len(const struct secret *secret);

/* In time that depends on the lengths only. */
bool secret_equal(const struct secret *a, const struct secret *b);

/* The first 16 hex digits of its SHA-256: what logs and audit call it. Borrowed from the secret. */
const char *secret_fingerprint(const struct secret *secret);

static inline void secret_unref_p(struct secret **secret)
{
	secret_unref(*secret);
}
