/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/plan/user.h"

#include "broker/base/alloc.h"
#include "broker/base/err.h"
#include "broker/base/log.h"
#include "broker/base/parse.h"
#include "sandbox/plan/caller.h"
#include "sandbox/plan/options.h"

#include <stdbool.h>
#include <string.h>

/* Two of the longest names that Linux has, and the colon. */
#define IMAGE_USER_MAX 65

static int parse_id(const char *text, size_t len, uint32_t *out)
{
	AUTO_FREE char *digits = xstrndup(text, len);
	uint64_t id = 0;

	if (parse_uint(digits, 0, USER_ID_MAX, &id))
		return -1;
	*out = (uint32_t)id;
	return 0;
}

int user_ids_parse(const char *text, struct user_ids *out, struct err *err)
{
	const size_t first = strcspn(text, ":");
	const char *const second = text[first] ? text + first + 1 : NULL;
	struct user_ids ids;
	struct quoted q;

	if (parse_id(text, first, &ids.uid) ||
	    parse_id(second ? second : text, second ? strlen(second) : first, &ids.gid))
		return err_set(err, ERR_USAGE,
			       "--user %s: must be U or U:G with numbers from 0 to %u, such "
			       "as " USER_FALLBACK,
			       quote_str(&q, text), USER_ID_MAX);
	*out = ids;
	return 0;
}

/* An image's USER may be a name or a number, with or without a group; engines take "+0" and "00" as 0. */
static bool is_root(const char *image_user)
{
	const size_t len = strcspn(image_user, ":");
	const size_t sign = len && strchr("+-", image_user[0]) ? 1 : 0;

	return (len == 4 && !memcmp(image_user, "root", 4)) ||
	       sign + strspn(image_user + sign, "0") == len;
}

/* As users and groups are written; what is not comes from an image that nobody should have to read. */
static bool is_plain(const char *image_user)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_.:+-";

	return !image_user[strspn(image_user, plain)] && strlen(image_user) <= IMAGE_USER_MAX;
}

int user_choose(const struct run_options *options, const struct caller *caller,
		const char *image_user, char **out, struct err *err)
{
	struct user_ids ids;

	if (options->user) {
		if (user_ids_parse(options->user, &ids, err))
			return -1;
		*out = xasprintf("%u:%u", ids.uid, ids.gid);
		return 0;
	}
	if (!caller->uid) {
		/* In so many words: the image that is run may be a newer one of the same name. */
		const bool is_good = image_user && is_plain(image_user) && !is_root(image_user);
		*out = xstrdup(is_good ? image_user : USER_FALLBACK);
		return 0;
	}
	if (caller->uid > USER_ID_MAX || caller->gid > USER_ID_MAX)
		return err_set(
			err, ERR_INVALID,
			"your ids %u:%u are above %u, which engines refuse; give --user " USER_FALLBACK
			" and let that user write to the workspace",
			caller->uid, caller->gid, USER_ID_MAX);
	*out = xasprintf("%u:%u", caller->uid, caller->gid);
	return 0;
}
