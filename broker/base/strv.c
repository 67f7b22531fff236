/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/base/strv.h"

#include "broker/base/alloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void strv_deinit(struct strv *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i]);
	free(list->items);
	*list = (struct strv){0};
}

void strv_add(struct strv *list, const char *item, size_t len)
{
	list->items = xreallocarray(list->items, list->count + 1, sizeof(char *));
	list->items[list->count++] = xstrndup(item, len);
}

void strv_addf(struct strv *list, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	strv_addv(list, fmt, ap);
	va_end(ap);
}

void strv_addv(struct strv *list, const char *fmt, va_list ap)
{
	char *text = NULL;

	const int len = vasprintf(&text, fmt, ap);
	if (len < 0)
		abort();
	strv_add(list, text, (size_t)len);
	free(text);
}

void strv_copy(struct strv *to, const struct strv *from)
{
	for (size_t i = 0; i < from->count; i++)
		strv_add(to, from->items[i], strlen(from->items[i]));
}

bool strv_equal(const struct strv *a, const struct strv *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (strcmp(a->items[i], b->items[i]) != 0)
			return false;
	return true;
}

bool strv_contains(const struct strv *list, const char *item)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->items[i], item))
			return true;
	return false;
}

int strv_split(struct strv *list, const char *text)
{
	for (;;) {
		text += strspn(text, " \t");
		const size_t field = strcspn(text, ",");
		size_t len = field;
		while (len && (text[len - 1] == ' ' || text[len - 1] == '\t'))
			len--;
		if (!len)
			return -1;
		strv_add(list, text, len);
		if (!text[field])
			return 0;
		text += field + 1;
	}
}
