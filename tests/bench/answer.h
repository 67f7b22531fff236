/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an HTTP/1 answer ends.
 */
#pragma once

#include <stddef.h>

/* Head and body together; what is longer is taken for broken. */
#define ANSWER_MAX_BYTES ((size_t)8192)

/* The first answer in `data`: its length in bytes, or 0 while it is not whole. */
size_t answer_length(const char *data, size_t len);

/* The status of an answer that is whole; 0 where it has none. */
unsigned answer_status(const char *data, size_t len);
