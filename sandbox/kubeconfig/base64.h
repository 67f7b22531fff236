/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Base64 (RFC 4648 section 4) both ways, and base64url without padding (section 5) read.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stddef.h>

struct buf;

/* Appends the encoding; the caller's buffer has room for 4/3 of it and 4 bytes. */
void base64_encode(struct buf *out, const void *bytes, size_t len);

/*
 * Appends what the text stands for; line ends in it are skipped, as Go does. -1 where it is no base64
 * with its padding, or does not fit.
 */
NODISCARD int base64_decode(struct buf *out, const char *text, size_t len);

/* The same of base64url without padding and line ends. */
NODISCARD int base64_decode_url(struct buf *out, const char *text, size_t len);
