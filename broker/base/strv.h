/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of strings that owns them: scopes, delegates, groups.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct strv {
	char **items;
	size_t count;
};

#define AUTO_STRV CLEANUP(strv_deinit)

void strv_deinit(struct strv *list);
void strv_add(struct strv *list, const char *item, size_t len);
void strv_addf(struct strv *list, const char *fmt, ...) PRINTF_LIKE(2, 3);
void strv_addv(struct strv *list, const char *fmt, va_list ap) PRINTF_LIKE(2, 0);
/* A deep copy into a zeroed list. */
void strv_copy(struct strv *to, const struct strv *from);
bool strv_equal(const struct strv *a, const struct strv *b);
bool strv_contains(const struct strv *list, const char *item);
/* Splits at commas into a zeroed list, blanks around an item dropped. -1 on an empty item. */
NODISCARD int strv_split(struct strv *list, const char *text);
