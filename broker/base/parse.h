/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values from text, whole or not at all: no leading blank, no sign, nothing behind.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decimal digits only. -1 where it is none, or out of [min, max]. */
NODISCARD int parse_uint(const char *text, uint64_t min, uint64_t max, uint64_t *out);

/* "90s", "5m", "12h" in seconds. -1 without a unit, with another one, or out of [min_s, max_s]. */
NODISCARD int parse_duration_s(const char *text, int64_t min_s, int64_t max_s, int64_t *out_s);

/* "yes" or "no". */
NODISCARD int parse_bool(const char *text, bool *out);

/* True where every byte of a non-empty text is one of the ASCII letters and digits or of `others`. */
bool text_is_of(const char *text, const char *others);

/*
 * A DNS name or an IPv4 address: labels of letters, digits and inner hyphens, joined by single dots,
 * none at the end.
 */
bool text_is_host_name(const char *text);

/*
 * The e-mail address of a service account: one "@", a domain with a dot, nothing that has a meaning in
 * a URL.
 */
bool text_is_email(const char *text);
