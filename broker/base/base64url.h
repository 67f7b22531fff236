/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Base64url without padding (RFC 4648 section 5, RFC 7515 section 2).
 */
#pragma once

#include <stddef.h>

struct buf;

/* Appends the encoding; the caller's buffer has room for 4/3 of it. */
void base64url_encode(struct buf *out, const void *bytes, size_t len);
