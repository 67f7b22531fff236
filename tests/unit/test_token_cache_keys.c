/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a token is minted for: keys are compared in full, and no entry ever has the token of another.
 */
#include "broker/token_cache.h"

#include "tests/unit/token_cache_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define EMAIL "agent-7@my-project.iam.gserviceaccount.com"
#define SCOPE_A "https://www.googleapis.com/auth/cloud-platform"
#define SCOPE_B "https://www.googleapis.com/auth/userinfo.email"
#define DELEGATE_A "first@my-project.iam.gserviceaccount.com"
#define DELEGATE_B "second@my-project.iam.gserviceaccount.com"
#define SESSION "0123456789abcdef"

/* A key as text; lists with commas between. */
struct key_row {
	const char *service_account;
	const char *scopes;
	const char *delegates;
	int64_t lifetime_s;
	const char *session;
};

/* No two of them are the same. */
static const struct key_row rows[] = {
	{EMAIL, SCOPE_A, "", 3600, SESSION},
	{"agent-8@my-project.iam.gserviceaccount.com", SCOPE_A, "", 3600, SESSION},
	{"Agent-7@my-project.iam.gserviceaccount.com", SCOPE_A, "", 3600, SESSION},
	{EMAIL ".example", SCOPE_A, "", 3600, SESSION},
	{EMAIL, SCOPE_B, "", 3600, SESSION},
	{EMAIL, SCOPE_A "," SCOPE_B, "", 3600, SESSION},
	{EMAIL, SCOPE_A " " SCOPE_B, "", 3600, SESSION},
	{EMAIL, SCOPE_A, DELEGATE_A, 3600, SESSION},
	{EMAIL, SCOPE_A, DELEGATE_A "," DELEGATE_B, 3600, SESSION},
	{EMAIL, SCOPE_A, DELEGATE_B "," DELEGATE_A, 3600, SESSION},
	/* A string that changes its list. */
	{EMAIL, SCOPE_A "," DELEGATE_A, "", 3600, SESSION},
	{EMAIL, SCOPE_A, "", 3601, SESSION},
	{EMAIL, SCOPE_A, "", 3600 + (INT64_C(1) << 32), SESSION},
	{EMAIL, SCOPE_A, "", 3600, "0123456789abcdee"},
	{EMAIL, SCOPE_A, "", 3600, ""},
	{EMAIL, SCOPE_A, "", 3600, NULL},
};

/* Every part of it in memory of its own. */
struct owned_key {
	char service_account[80];
	char session[32];
	struct strv scopes;
	struct strv delegates;
	struct token_key key;
};

static void add_all(struct strv *list, const char *text)
{
	while (*text) {
		const size_t len = strcspn(text, ",");
		strv_add(list, text, len);
		text += len + (text[len] == ',');
	}
}

static void own(struct owned_key *own, const struct key_row *row)
{
	*own = (struct owned_key){0};
	(void)snprintf(own->service_account, sizeof(own->service_account), "%s",
		       row->service_account);
	(void)snprintf(own->session, sizeof(own->session), "%s", row->session ? row->session : "");
	add_all(&own->scopes, row->scopes);
	add_all(&own->delegates, row->delegates);
	own->key = (struct token_key){
		.service_account = own->service_account,
		.scopes = &own->scopes,
		.delegates = &own->delegates,
		.lifetime_s = row->lifetime_s,
		.session = row->session ? own->session : NULL,
	};
}

/* Gives back its memory, overwritten first. */
static void disown(struct owned_key *own)
{
	memset(own->service_account, 'x', sizeof(own->service_account) - 1);
	memset(own->session, 'x', sizeof(own->session) - 1);
	for (size_t i = 0; i < own->scopes.count; i++)
		memset(own->scopes.items[i], 'x', strlen(own->scopes.items[i]));
	for (size_t i = 0; i < own->delegates.count; i++)
		memset(own->delegates.items[i], 'x', strlen(own->delegates.items[i]));
	strv_deinit(&own->scopes);
	strv_deinit(&own->delegates);
}

static struct token_entry *entry_of(struct fixture *f, const struct key_row *row)
{
	struct owned_key key;

	own(&key, row);
	struct token_entry *const entry = token_cache_get(f->cache, &key.key);
	disown(&key);
	return entry;
}

/* One subject a row, after the fixture's own. */
static struct subject *add_rows(struct fixture *f)
{
	/* The fixture's own key is the first row's. */
	token_entry_unref(f->subjects[0].entry);
	f->subject_count = 0;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct owned_key key;
		own(&key, &rows[i]);
		(void)fixture_add(f, &key.key, MARGIN_S);
		disown(&key);
	}
	return f->subjects;
}

static void keys_that_differ_in_one_field_have_entries_of_their_own(void **state)
{
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	const struct subject *const subjects = add_rows(&f);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (size_t j = 0; j < i; j++)
			assert_ptr_not_equal(subjects[i].entry, subjects[j].entry);
}

static void keys_of_the_same_values_have_one_entry(void **state)
{
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	const struct subject *const subjects = add_rows(&f);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct token_entry *const entry = entry_of(&f, &rows[i]);
		assert_ptr_equal(entry, subjects[i].entry);
		token_entry_unref(entry);
	}
}

static void the_mint_is_given_the_key_as_it_was(void **state)
{
	struct client clients[ARRAY_LEN(rows)] = {0};
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	struct subject *const subjects = add_rows(&f);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		client_ask(&clients[i], &subjects[i]);
		assert_int_equal(f.start_count, i + 1);
		assert_string_equal(f.starts[i].key, subjects[i].key);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(f.starts[i].ref, f.starts[j].ref);
	}
	fixture_advance(&f, MINT_MS);
}

static void each_entry_has_its_own_token_to_the_end(void **state)
{
	struct client clients[ARRAY_LEN(rows)] = {0};
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	struct subject *const subjects = add_rows(&f);
	f.plan = plan_hang;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		client_ask(&clients[i], &subjects[i]);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		/* That the token is its own is checked with every answer. */
		fixture_finish(&f, &plan_succeed);
		for (size_t j = 0; j < ARRAY_LEN(rows); j++)
			assert_int_equal(clients[j].answers, j <= i);
	}
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		client_ask(&clients[i], &subjects[i]);
		expect_token(&clients[i], 3601);
	}
	assert_int_equal(f.start_count, ARRAY_LEN(rows));
}

static void a_failure_is_of_one_entry_only(void **state)
{
	struct client clients[ARRAY_LEN(rows)] = {0};
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	struct subject *const subjects = add_rows(&f);
	f.plan = plan_deny;
	client_ask(&clients[0], &subjects[0]);
	fixture_advance(&f, MINT_MS);
	f.plan = plan_succeed;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		client_ask(&clients[i], &subjects[i]);
	fixture_advance(&f, MINT_MS);
	expect_status(&clients[0], TOKEN_DENIED);
	for (size_t i = 1; i < ARRAY_LEN(rows); i++)
		expect_token(&clients[i], 3601);
}

static void an_entry_given_back_takes_its_token_along(void **state)
{
	struct client client = {0};
	AUTO_FIXTURE struct fixture f;

	(void)state;
	fixture_init(&f, JITTER_NONE);
	struct subject *const subjects = add_rows(&f);
	client_ask(&client, &subjects[0]);
	fixture_advance(&f, MINT_MS);
	/* Another reference keeps it. */
	struct token_entry *const entry = entry_of(&f, &rows[0]);
	token_entry_unref(subjects[0].entry);
	client_ask(&client, &subjects[0]);
	expect_token(&client, 3601);
	token_entry_unref(entry);
	subjects[0].entry = entry_of(&f, &rows[0]);
	subjects[0].has_token = false;
	client_ask(&client, &subjects[0]);
	assert_true(client.waiting);
	assert_int_equal(f.start_count, 2);
	fixture_advance(&f, MINT_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_that_differ_in_one_field_have_entries_of_their_own),
		cmocka_unit_test(keys_of_the_same_values_have_one_entry),
		cmocka_unit_test(the_mint_is_given_the_key_as_it_was),
		cmocka_unit_test(each_entry_has_its_own_token_to_the_end),
		cmocka_unit_test(a_failure_is_of_one_entry_only),
		cmocka_unit_test(an_entry_given_back_takes_its_token_along),
	};

	return cmocka_run_group_tests_name("token cache, keys", tests, NULL, NULL);
}
