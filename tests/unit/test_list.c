/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/base/list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct item {
	char name;
	struct list link;
};

static void assert_names(const struct list *head, const char *names)
{
	list_for_each(link, head) {
		assert_int_equal(CONTAINER_OF(link, struct item, link)->name, *names);
		names++;
	}
	assert_int_equal(*names, '\0');
}

static void links_stand_in_the_order_they_were_appended(void **state)
{
	struct item a = {.name = 'a'};
	struct item b = {.name = 'b'};
	struct item c = {.name = 'c'};
	struct list head;

	(void)state;
	list_init(&head);
	assert_true(list_empty(&head));
	assert_null(list_first(&head));
	assert_names(&head, "");
	list_append(&head, &a.link);
	list_append(&head, &b.link);
	list_append(&head, &c.link);
	assert_names(&head, "abc");
	assert_ptr_equal(list_first(&head), &a.link);
	list_remove(&b.link);
	assert_false(list_linked(&b.link));
	assert_names(&head, "ac");
	list_remove(&b.link);
	list_append(&head, &b.link);
	assert_names(&head, "acb");
}

static void a_zeroed_link_may_be_removed(void **state)
{
	struct item a = {.name = 'a'};

	(void)state;
	assert_false(list_linked(&a.link));
	list_remove(&a.link);
	assert_false(list_linked(&a.link));
}

static void the_link_that_is_looked_at_may_be_removed(void **state)
{
	struct item items[] = {{.name = 'a'}, {.name = 'b'}, {.name = 'c'}};
	struct list head;
	unsigned seen = 0;

	(void)state;
	list_init(&head);
	for (size_t i = 0; i < ARRAY_LEN(items); i++)
		list_append(&head, &items[i].link);
	list_for_each(link, &head) {
		list_remove(link);
		seen++;
	}
	assert_int_equal(seen, 3);
	assert_true(list_empty(&head));
}

static void all_of_a_list_moves_at_once(void **state)
{
	struct item a = {.name = 'a'};
	struct item b = {.name = 'b'};
	struct list from;
	struct list to;

	(void)state;
	list_init(&from);
	list_move_all(&to, &from);
	assert_true(list_empty(&to));
	list_append(&from, &a.link);
	list_append(&from, &b.link);
	list_move_all(&to, &from);
	assert_true(list_empty(&from));
	assert_names(&to, "ab");
	list_remove(&a.link);
	list_append(&from, &a.link);
	assert_names(&to, "b");
	assert_names(&from, "a");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(links_stand_in_the_order_they_were_appended),
		cmocka_unit_test(a_zeroed_link_may_be_removed),
		cmocka_unit_test(the_link_that_is_looked_at_may_be_removed),
		cmocka_unit_test(all_of_a_list_moves_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
