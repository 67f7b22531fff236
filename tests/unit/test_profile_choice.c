/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/profile_choice.h"

#include "broker/base/err.h"
#include "sandbox/plan/providers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct provider of_b = {.name = "of-b", .kind = PROVIDER_SESSION, .backend = "b"};

/* "name:backend name:backend …" as a broker's status. */
static json_t *status_of(const char *profiles)
{
	json_t *const list = json_array();

	while (*profiles) {
		const size_t name = strcspn(profiles, ":");
		const size_t both = strcspn(profiles, " ");
		(void)json_array_append_new(list, json_pack("{s:s%,s:s%,s:s}", "name", profiles,
							    name, "backend", profiles + name + 1,
							    both - name - 1, "project", "p"));
		profiles += both + (profiles[both] == ' ');
	}
	return json_pack("{s:o}", "profiles", list);
}

static void one_is_chosen_as_the_contract_says(void **state)
{
	static const struct {
		const char *profiles;
		const char *name;
		const struct provider *provider;
		int status;
		const char *chosen;
	} cases[] = {
		{"one:a", NULL, NULL, 0, "one"},
		{"one:a two:a", "two", NULL, 0, "two"},
		{"one:a two:a", NULL, NULL, 2, NULL},
		{"one:a default:a", NULL, NULL, 0, "default"},
		{"", NULL, NULL, 2, NULL},
		{"one:a", "none", NULL, 3, NULL},
		{"one:a two:b", NULL, &of_b, 0, "two"},
		{"one:a two:b", "one", &of_b, 3, NULL},
		{"default:a two:b three:b", NULL, &of_b, 2, NULL},
		{"default:b two:b", NULL, &of_b, 0, "default"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *status = status_of(cases[i].profiles);
		struct profile_choice choice = {0};
		struct err err = {0};
		assert_int_equal(profile_choose(status, cases[i].name, cases[i].provider, &choice,
						&err),
				 cases[i].status);
		if (cases[i].chosen)
			assert_string_equal(choice.name, cases[i].chosen);
		else
			assert_true(*err.text);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_is_chosen_as_the_contract_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
