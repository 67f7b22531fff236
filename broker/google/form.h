/* SPDX-License-Identifier: Apache-2.0 */
/*
 * application/x-www-form-urlencoded, with a blank as %20, which every decoder of it takes.
 */
#pragma once

struct buf;

/* Appends the text with everything escaped that is not unreserved (RFC 3986 section 2.3). */
void form_escape(struct buf *out, const char *text);
/* Appends a field, with "&" in front where it is not the first one. */
void form_add(struct buf *out, const char *name, const char *value);
