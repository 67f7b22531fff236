/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/plan/providers.h"

#include "broker/base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* What issue and contract name: the word, its canonical name, its kind. */
static const struct {
	const char *word;
	const char *name;
	enum provider_kind kind;
} known[] = {
	{"google", "google", PROVIDER_KEY},
	{"gemini", "google", PROVIDER_KEY},
	{"anthropic", "anthropic", PROVIDER_KEY},
	{"claude", "anthropic", PROVIDER_KEY},
	{"openai", "openai", PROVIDER_KEY},
	{"google-vertex", "google-vertex", PROVIDER_SESSION},
	{"google_vertex", "google-vertex", PROVIDER_SESSION},
	{"anthropic-vertex", "anthropic-vertex", PROVIDER_SESSION},
	{"anthropic_vertex", "anthropic-vertex", PROVIDER_SESSION},
	{"Anthropic-Vertex", "anthropic-vertex", PROVIDER_SESSION},
};

static void every_name_and_alias_is_found(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		const struct provider *found = NULL;
		struct err err = {0};
		assert_int_equal(provider_find(known[i].word, &found, &err), 0);
		assert_non_null(found);
		assert_string_equal(found->name, known[i].name);
		assert_int_equal(found->kind, known[i].kind);
	}
}

static void a_vertex_provider_is_of_the_vertex_backend(void **state)
{
	size_t count = 0;
	const struct provider *const table = provider_table(&count);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		if (table[i].kind == PROVIDER_SESSION)
			assert_string_equal(table[i].backend, "vertex");
		else
			assert_null(table[i].backend);
	}
}

static void a_keyless_one_without_a_recipe_is_refused_with_the_way_out(void **state)
{
	static const char *const words[] = {"anthropic-bedrock", "anthropic_bedrock",
					    "ANTHROPIC-BEDROCK"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		const struct provider *found = NULL;
		struct err err = {0};
		assert_int_equal(provider_find(words[i], &found, &err), -1);
		assert_int_equal(err.code, ERR_UNSUPPORTED);
		assert_null(found);
		assert_non_null(strstr(err.text, "anthropic-bedrock"));
		assert_non_null(strstr(err.text, "no recipe"));
		assert_non_null(strstr(err.text, "use anthropic-vertex"));
	}
}

static void anything_else_is_usage_and_names_the_known_ones(void **state)
{
	static const char *const words[] = {"nonsense", "", "google ", "vertex\n", "openai,google"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		const struct provider *found = NULL;
		struct err err = {0};
		assert_int_equal(provider_find(words[i], &found, &err), -1);
		assert_int_equal(err.code, ERR_USAGE);
		assert_non_null(strstr(err.text, "google-vertex"));
	}
}

static void no_word_means_two_providers(void **state)
{
	size_t count = 0;
	const struct provider *const table = provider_table(&count);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		const struct provider *found = NULL;
		struct err err = {0};
		if (table[i].kind == PROVIDER_NO_RECIPE)
			continue;
		for (const char *const *alias = table[i].aliases; *alias; alias++) {
			assert_int_equal(provider_find(*alias, &found, &err), 0);
			assert_ptr_equal(found, &table[i]);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_name_and_alias_is_found),
		cmocka_unit_test(a_vertex_provider_is_of_the_vertex_backend),
		cmocka_unit_test(a_keyless_one_without_a_recipe_is_refused_with_the_way_out),
		cmocka_unit_test(anything_else_is_usage_and_names_the_known_ones),
		cmocka_unit_test(no_word_means_two_providers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
