/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/base/option_table.h"

#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/base/err.h"
#include "broker/base/log.h"
#include "broker/base/parse.h"
#include "broker/base/strv.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Above every character, so that getopt_long() does not take one for a short option. */
#define FIRST_VALUE 0x100
#define MAX_DURATION_S ((int64_t)720 * 3600)

static int refuse_word(const struct option_spec *spec, const char *value, struct err *err)
{
	struct quoted q;
	AUTO_BUF struct buf words;

	buf_init(&words, 1024);
	for (const char *const *word = spec->words; *word; word++)
		buf_addf(&words, "%s%s", words.len ? ", " : "", *word);
	return err_set(err, ERR_USAGE, "%s %s: must be one of %s", spec->flag, quote_str(&q, value),
		       words.data);
}

static int put_word(const struct option_spec *spec, const char *value, void *field, struct err *err)
{
	for (int i = 0; spec->words[i]; i++) {
		if (strcmp(spec->words[i], value) != 0)
			continue;
		*(int *)field = i;
		return 0;
	}
	return refuse_word(spec, value, err);
}

static int put_duration(const struct option_spec *spec, const char *value, int64_t *field,
			struct err *err)
{
	struct quoted q;

	if (!parse_duration_s(value, 1, MAX_DURATION_S, field))
		return 0;
	return err_set(err, ERR_USAGE,
		       "%s %s: must be a duration from 1s to 720h, such as 90s, 45m or 2h",
		       spec->flag, quote_str(&q, value));
}

/* `value` is "" for an option that takes none. */
static int put(const struct option_spec *spec, const char *value, void *out, struct err *err)
{
	void *const field = (char *)out + spec->offset;

	if (spec->argument && !*value)
		return err_set(err, ERR_USAGE, "%s is blank; give %s or leave it out", spec->flag,
			       spec->argument);
	if (spec->check && spec->check(value, err))
		return -1;
	switch (spec->kind) {
	case OPTION_TEXT:
		*(const char **)field = value;
		return 0;
	case OPTION_LIST:
		strv_add(field, value, strlen(value));
		return 0;
	case OPTION_SWITCH:
		*(bool *)field = true;
		return 0;
	case OPTION_DURATION:
		return put_duration(spec, value, field, err);
	case OPTION_WORD:
		return put_word(spec, value, field, err);
	}
	return 0;
}

static int refuse_unknown(const struct option_table *table, const char *argument, struct err *err)
{
	AUTO_FREE char *flag = xstrndup(argument, strcspn(argument, "="));
	const char *const why = table->refusal ? table->refusal(flag) : NULL;
	struct quoted q;

	if (why)
		return err_set(err, ERR_UNSUPPORTED, "%s is refused: %s", flag, why);
	/* Without what stands behind "=": it may be a value that was meant for another option. */
	return err_set(err, ERR_USAGE, "unknown option %s; --help lists them", quote_str(&q, flag));
}

/* The option that was found at `argument`, which must be written out in full. */
static const struct option_spec *spec_at(const struct option_table *table, int found,
					 const char *argument)
{
	const struct option_spec *const spec = &table->specs[found - FIRST_VALUE];
	const size_t len = strlen(spec->flag);

	return !strncmp(argument, spec->flag, len) && (!argument[len] || argument[len] == '=') ?
		       spec :
		       NULL;
}

static int refuse_argument(const struct option_table *table, int found, const char *argument,
			   struct err *err)
{
	if (optopt < FIRST_VALUE || !spec_at(table, optopt, argument))
		return refuse_unknown(table, argument, err);
	const struct option_spec *const spec = &table->specs[optopt - FIRST_VALUE];
	if (found == ':')
		return err_set(err, ERR_USAGE, "%s needs %s", spec->flag, spec->argument);
	return err_set(err, ERR_USAGE, "%s takes no argument", spec->flag);
}

static void describe(const struct option_table *table,
		     struct option longs[static OPTION_TABLE_MAX + 1])
{
	for (size_t i = 0; i < table->count; i++)
		longs[i] = (struct option){
			.name = table->specs[i].flag + 2,
			.has_arg = table->specs[i].argument ? required_argument : no_argument,
			.val = FIRST_VALUE + (int)i,
		};
}

int option_table_read(const struct option_table *table, int argc, char **argv, void *out, int *rest,
		      struct err *err)
{
	struct option longs[OPTION_TABLE_MAX + 1] = {0};
	bool seen[OPTION_TABLE_MAX] = {0};

	describe(table, longs);
	optind = 0; /* starts anew, see getopt(3) */
	opterr = 0;
	for (;;) {
		/* The one that is looked at next; optind says 0 before the first. */
		const int at = optind ? optind : 1;
		const int found = getopt_long(argc, argv, "+:", longs, NULL);
		if (found == -1)
			break;
		if (found == '?' || found == ':')
			return refuse_argument(table, found, argv[at], err);
		const struct option_spec *const spec = spec_at(table, found, argv[at]);
		if (!spec)
			return refuse_unknown(table, argv[at], err);
		if (seen[found - FIRST_VALUE] && spec->kind != OPTION_LIST)
			return err_set(err, ERR_USAGE, "%s is given twice; keep one", spec->flag);
		seen[found - FIRST_VALUE] = true;
		if (put(spec, optarg ? optarg : "", out, err))
			return -1;
	}
	*rest = optind;
	return 0;
}

void option_table_help(const struct option_table *table, struct buf *out)
{
	for (size_t i = 0; i < table->count; i++) {
		const struct option_spec *const spec = &table->specs[i];
		AUTO_FREE char *left =
			xasprintf("%s %s", spec->flag, spec->argument ? spec->argument : "");
		buf_addf(out, "  %-29s %s\n", left, spec->help);
	}
}
