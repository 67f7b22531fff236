/* SPDX-License-Identifier: Apache-2.0 */
/* The operator's text of a failure: a line of the table with names and commands in it. */
#include "broker/google/failure.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* More than this between our clock and Google's is worth a word. */
#define SKEW_WORTH_TELLING_S 60

#define LOG_IN_AGAIN "log in again with: gcloud auth application-default login"

/* What a text has in braces, and what stands for it. */
struct word {
	const char *name;
	const char *value;
};

#define SCENE_WORDS 9

/* What begins with "{name}", or NULL. */
static const struct word *find_word(const struct word words[static SCENE_WORDS], const char *text)
{
	for (size_t i = 0; i < SCENE_WORDS; i++) {
		const size_t len = strlen(words[i].name);
		if (text[0] == '{' && !strncmp(text + 1, words[i].name, len) &&
		    text[len + 1] == '}')
			return &words[i];
	}
	return NULL;
}

static void expand(char *out, size_t size, const char *text,
		   const struct word words[static SCENE_WORDS])
{
	size_t len = 0;

	while (*text && len < size - 1) {
		const struct word *const word = find_word(words, text);
		if (!word) {
			out[len++] = *text++;
			continue;
		}
		text += strlen(word->name) + strlen("{}");
		const size_t left = size - len;
		const size_t value_len = strlen(word->value);
		(void)snprintf(out + len, left, "%s", word->value);
		len += value_len < left ? value_len : left - 1;
	}
	out[len] = '\0';
}

static const char *or_else(const char *text, const char *fallback)
{
	return text && *text ? text : fallback;
}

/* How IAM's policies name who called. */
static void describe_member(char *out, size_t size, const char *caller)
{
	static const char domain[] = ".gserviceaccount.com";
	const size_t len = caller ? strlen(caller) : 0;
	const bool is_account = len > strlen(domain) &&
				!strcmp(caller + len - strlen(domain), domain);

	if (len)
		(void)snprintf(out, size, "%s:%s", is_account ? "serviceAccount" : "user", caller);
	else
		(void)snprintf(out, size, "MEMBER");
}

static void describe_skew(char *out, size_t size, int64_t wall_s, int64_t date_s)
{
	const int64_t skew_s = wall_s - date_s;

	out[0] = '\0';
	if (!wall_s || !date_s ||
	    (skew_s <= SKEW_WORTH_TELLING_S && skew_s >= -SKEW_WORTH_TELLING_S))
		return;
	(void)snprintf(out, size,
		       "; the host's clock is %" PRId64
		       " s %s Google's: set it, with: chronyc makestep",
		       skew_s < 0 ? -skew_s : skew_s, skew_s < 0 ? "behind" : "ahead of");
}

static int64_t distance(int64_t a, int64_t b)
{
	return a < b ? b - a : a - b;
}

/* What a token says of itself, by our clock. */
static void describe_age(char *out, size_t size, const struct failure_scene *scene)
{
	const int64_t now_s = scene->wall_s;
	size_t len = 0;

	out[0] = '\0';
	if (now_s && scene->issued_s)
		len = (size_t)snprintf(out, size, "; it says that it was issued %" PRId64 " s %s",
				       distance(now_s, scene->issued_s),
				       scene->issued_s <= now_s ? "ago" : "ahead of our clock");
	if (now_s && scene->expires_s && len < size)
		(void)snprintf(out + len, size - len, "%s %" PRId64 " s %s",
			       scene->expires_s <= now_s ? "; it ended" : "; it ends",
			       distance(now_s, scene->expires_s),
			       scene->expires_s <= now_s ? "ago" : "from now");
}

void failure_fill(struct failure *failure, const struct failure_scene *scene)
{
	char member[sizeof("serviceAccount:") + 254];
	char skew[128];
	char age[160];

	if (!failure->hint)
		return;
	describe_member(member, sizeof(member), scene->caller);
	describe_skew(skew, sizeof(skew), scene->wall_s, failure->date_s);
	describe_age(age, sizeof(age), scene);
	const struct word words[SCENE_WORDS] = {
		{"caller", or_else(scene->caller, "the source")},
		{"member", member},
		{"account", or_else(scene->account, "the account")},
		{"repair", or_else(scene->repair, LOG_IN_AGAIN)},
		{"service", or_else(failure->service, "iamcredentials.googleapis.com")},
		{"project", or_else(failure->project, "PROJECT")},
		{"perimeter", or_else(failure->perimeter, "in its own log")},
		{"age", age},
		{"skew", skew},
	};
	expand(failure->detail, sizeof(failure->detail), failure->hint, words);
	failure->hint = NULL;
}
