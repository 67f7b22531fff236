/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A doubly linked list through its members. A zeroed link is in no list; unlinking it is allowed.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stdbool.h>

struct list {
	struct list *prev;
	struct list *next;
};

static inline void list_init(struct list *head)
{
	head->prev = head;
	head->next = head;
}

static inline bool list_empty(const struct list *head)
{
	return head->next == head;
}

static inline bool list_linked(const struct list *link)
{
	return link->next != NULL;
}

static inline void list_append(struct list *head, struct list *link)
{
	link->prev = head->prev;
	link->next = head;
	head->prev->next = link;
	head->prev = link;
}

static inline void list_remove(struct list *link)
{
	if (!link->next)
		return;
	link->prev->next = link->next;
	link->next->prev = link->prev;
	link->prev = NULL;
	link->next = NULL;
}

/* Moves all of `from` to the empty or uninitialised `to`; `from` is empty afterwards. */
static inline void list_move_all(struct list *to, struct list *from)
{
	list_init(to);
	if (list_empty(from))
		return;
	*to = *from;
	to->next->prev = to;
	to->prev->next = to;
	list_init(from);
}

/* Walks; `pos` may be removed while it is looked at, its successor may not. */
#define list_for_each(pos, head)                                                             \
	for (struct list * (pos) = (head)->next, *next_##pos = (pos)->next; (pos) != (head); \
	     (pos) = next_##pos, next_##pos = (pos)->next)

/* The first link, or NULL. */
static inline struct list *list_first(const struct list *head)
{
	return list_empty(head) ? NULL : head->next;
}
