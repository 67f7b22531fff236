/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/plan/shut.h"

#include "broker/base/err.h"
#include "broker/base/strv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void fill(struct strv *list, const char *const *items)
{
	for (; *items; items++)
		strv_add(list, *items, strlen(*items));
}

static void the_default_list_is_whole_and_good(void **state)
{
	/* door facts, section 6 */
	static const char *const known[] = {"169.254.0.0/16",	  "168.63.129.16/32",
					    "100.100.100.200/32", "192.0.0.192/32",
					    "fd20:ce::/32",	  "fd00:ec2::/32"};
	AUTO_STRV struct strv list = {0};
	struct err err;

	(void)state;
	shut_default(&list);
	assert_int_equal(list.count, ARRAY_LEN(known));
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		assert_true(strv_contains(&list, known[i]));
		assert_int_equal(shut_check(known[i], &err), 0);
	}
	assert_int_equal(shut_check_list(&list, &err), 0);
}

static void a_list_may_leave_everything_open_but_the_metadata_addresses(void **state)
{
	AUTO_STRV struct strv list = {0};
	AUTO_STRV struct strv many = {0};
	struct err err;

	(void)state;
	fill(&list, (const char *const[]){"169.254.169.254", "10.0.0.0/8", NULL});
	assert_int_equal(shut_check_list(&list, &err), -1);
	assert_int_equal(err.code, ERR_USAGE);
	fill(&list, (const char *const[]){"fd20:ce::254/128", NULL});
	assert_int_equal(shut_check_list(&list, &err), 0);
	while (many.count <= SHUT_MAX)
		strv_add(&many, "169.254.169.254", strlen("169.254.169.254"));
	assert_int_equal(shut_check_list(&many, &err), -1);
}

static void a_nameserver_that_would_be_cut_off_is_kept_once(void **state)
{
	AUTO_STRV struct strv list = {0};
	AUTO_STRV struct strv servers = {0};
	AUTO_STRV struct strv kept = {0};

	(void)state;
	shut_default(&list);
	/* The metadata address is the resolver of Google's VMs; the door always keeps that. */
	fill(&servers, (const char *const[]){"169.254.169.254", "8.8.8.8", "168.63.129.16",
					     "168.63.129.16", "FD00:EC2:0::253", "fd20:ce::254",
					     "no-address", "127.0.0.53", NULL});
	shut_keep_nameservers(&list, &servers, &kept);
	assert_int_equal(kept.count, 2);
	assert_string_equal(kept.items[0], "168.63.129.16");
	assert_string_equal(kept.items[1], "fd00:ec2::253");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_default_list_is_whole_and_good),
		cmocka_unit_test(a_list_may_leave_everything_open_but_the_metadata_addresses),
		cmocka_unit_test(a_nameserver_that_would_be_cut_off_is_kept_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
