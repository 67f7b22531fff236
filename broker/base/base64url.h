/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Base64url without padding (RFC 4648 section 5, RFC 7515 section 2).
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

struct buf;

/* Appends the encoding; the caller's buffer has room for 4/3 of it. */
void base64url_encode(struct buf *out, const void *bytes, size_t len);

/*
 * Writes what the text stands for, at most 3/4 of len. Returns its length, or -1 where a byte is not of the
 * alphabet; bits that are too few for a byte at the end are left out.
 */
ssize_t base64url_decode(void *out, const char *text, size_t len);
