/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/config_values.h"

#include "broker/base/alloc.h"
#include "broker/base/err.h"
#include "broker/base/json.h"
#include "broker/base/log.h"
#include "broker/base/parse.h"
#include "broker/base/strv.h"
#include "broker/config.h"
#include "broker/config_keys.h"
#include "broker/net/address.h"
#include "broker/net/origin.h"

#include <limits.h>
#include <string.h>

static void release_string(void *field)
{
	char **const string = field;

	free(*string);
	*string = NULL;
}

static void release_list(void *field)
{
	strv_deinit(field);
}

static void release_peers(void *field)
{
	struct peers_config *const peers = field;

	free(peers->networks);
	*peers = (struct peers_config){0};
}

static int keep_string(const char *text, void *field)
{
	*(char **)field = xstrdup(text);
	return 0;
}

static int parse_yes_no(const struct config_key *key, const char *text, void *field,
			struct err *why)
{
	(void)key;
	(void)why;
	return parse_bool(text, field);
}

static int parse_unsigned(const struct config_key *key, const char *text, void *field,
			  struct err *why)
{
	uint64_t value;

	(void)why;
	if (parse_uint(text, (uint64_t)key->min, (uint64_t)key->max, &value))
		return -1;
	*(unsigned *)field = (unsigned)value;
	return 0;
}

static int parse_duration(const struct config_key *key, const char *text, void *field,
			  struct err *why)
{
	(void)why;
	return parse_duration_s(text, key->min, key->max, field);
}

static int parse_log_level(const struct config_key *key, const char *text, void *field,
			   struct err *why)
{
	const int level = log_level_by_name(text);

	(void)key;
	(void)why;
	if (level < 0)
		return -1;
	*(enum log_level *)field = (enum log_level)level;
	return 0;
}

static int parse_sharing(const struct config_key *key, const char *text, void *field,
			 struct err *why)
{
	enum token_sharing *const sharing = field;

	(void)key;
	(void)why;
	if (!strcmp(text, "session"))
		*sharing = TOKEN_SHARING_SESSION;
	else if (!strcmp(text, "profile"))
		*sharing = TOKEN_SHARING_PROFILE;
	else
		return -1;
	return 0;
}

static int parse_listen(const struct config_key *key, const char *text, void *field,
			struct err *why)
{
	(void)key;
	(void)why;
	return address_parse(field, text);
}

static int parse_session_listen(const struct config_key *key, const char *text, void *field,
				struct err *why)
{
	(void)key;
	(void)why;
	return strcmp(text, "auto") ? address_parse_ip(field, text) : 0;
}

/* Says which item of a list it is about, where there are several. */
static int refuse_item(const struct strv *list, const char *item, struct err *why)
{
	struct quoted q;

	return list->count < 2 ? -1 : err_set(why, ERR_INVALID, "not %s", quote_str(&q, item));
}

static int parse_peers(const struct config_key *key, const char *text, void *field, struct err *why)
{
	struct peers_config *const peers = field;
	AUTO_STRV struct strv list = {0};

	(void)key;
	peers->automatic = !strcmp(text, "auto");
	if (peers->automatic)
		return 0;
	if (strv_split(&list, text))
		return -1;
	peers->networks = xreallocarray(NULL, list.count, sizeof(*peers->networks));
	for (; peers->count < list.count; peers->count++) {
		const char *const item = list.items[peers->count];
		if (cidr_parse(&peers->networks[peers->count], item))
			return refuse_item(&list, item, why);
	}
	return 0;
}

static bool has_control(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return true;
	return false;
}

static int parse_path(const struct config_key *key, const char *text, void *field, struct err *why)
{
	const size_t len = strlen(text);

	if (len > (key->max ? (size_t)key->max : PATH_MAX - 1))
		return err_set(why, ERR_INVALID, "%zu bytes are too many", len);
	if (text[0] != '/' || text[len - 1] == '/' || has_control(text))
		return -1;
	/* Clients are told of some, in JSON. */
	if (!json_takes(text))
		return err_set(why, ERR_INVALID, "not UTF-8");
	return keep_string(text, field);
}

static int parse_audit_log(const struct config_key *key, const char *text, void *field,
			   struct err *why)
{
	if (!strcmp(text, "stderr") || !strcmp(text, "off"))
		return keep_string(text, field);
	return parse_path(key, text, field, why);
}

static int parse_source(const struct config_key *key, const char *text, void *field,
			struct err *why)
{
	static const char *const types[] = {"adc", "file", "gcloud", "metadata", "offline"};

	(void)key;
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (!strcmp(types[i], text))
			return keep_string(text, field);
	return err_set(why, ERR_INVALID, "no type of a source");
}

static int parse_backend(const struct config_key *key, const char *text, void *field,
			 struct err *why)
{
	(void)key;
	(void)why;
	return strcmp(text, "vertex") ? -1 : keep_string(text, field);
}

static bool is_group(const char *text)
{
	return text_is_of(text, "._-") && text[0] != '-';
}

static int parse_group(const struct config_key *key, const char *text, void *field, struct err *why)
{
	(void)key;
	(void)why;
	return is_group(text) ? keep_string(text, field) : -1;
}

/* Lower-case letters, digits and the others, the first a letter or digit; at most 63. */
static bool is_lower_name(const char *text, const char *others)
{
	const size_t len = strlen(text);

	return len >= 1 && len <= 63 && !strchr(others, text[0]) &&
	       strcspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == len && text_is_of(text, others);
}

static int parse_project(const struct config_key *key, const char *text, void *field,
			 struct err *why)
{
	(void)key;
	(void)why;
	return is_lower_name(text, ".:-") ? keep_string(text, field) : -1;
}

static int parse_location(const struct config_key *key, const char *text, void *field,
			  struct err *why)
{
	(void)key;
	(void)why;
	return is_lower_name(text, "-") ? keep_string(text, field) : -1;
}

/* As the emulator serves it: what JSON has for a number here is an int64. */
static int parse_number(const struct config_key *key, const char *text, void *field,
			struct err *why)
{
	uint64_t value;

	(void)key;
	(void)why;
	return parse_uint(text, 1, INT64_MAX, &value) ? -1 : keep_string(text, field);
}

/* Fills `why` with what keeps the text from being an e-mail address, where it can be told. */
static int email_reason(const char *text, struct err *why)
{
	struct quoted q;
	const size_t len = strlen(text);

	for (size_t i = 0; i < len; i++) {
		const char one[2] = {text[i], '\0'};
		if (!text_is_of(one, "@.-_+"))
			return err_set(why, ERR_INVALID, "holds %s", quote_str(&q, one));
	}
	if (len && !strchr(text, '@'))
		return err_set(why, ERR_INVALID, "holds no \"@\"");
	return -1;
}

static int parse_email(const struct config_key *key, const char *text, void *field, struct err *why)
{
	(void)key;
	return text_is_email(text) ? keep_string(text, field) : email_reason(text, why);
}

static int parse_host(const struct config_key *key, const char *text, void *field, struct err *why)
{
	(void)key;
	(void)why;
	return text_is_host_name(text) ? keep_string(text, field) : -1;
}

static int parse_host_port(const struct config_key *key, const char *text, void *field,
			   struct err *why)
{
	(void)key;
	(void)why;
	return text_is_host_port(text) ? keep_string(text, field) : -1;
}

/* Plain http is weighed once the whole file is read: it depends on another key. */
static int parse_url(const struct config_key *key, const char *text, void *field, struct err *why)
{
	const char *reason;

	(void)key;
	if (!origin_parse(text, field, &reason))
		return 0;
	return reason ? err_set(why, ERR_INVALID, "%s", reason) : -1;
}

static int parse_list(const char *text, struct strv *list, bool (*good)(const char *),
		      struct err *why)
{
	if (strv_split(list, text))
		return err_set(why, ERR_INVALID, "holds an empty item");
	for (size_t i = 0; i < list->count; i++)
		if (!good(list->items[i]))
			return refuse_item(list, list->items[i], why);
	return 0;
}

static int parse_emails(const struct config_key *key, const char *text, void *field,
			struct err *why)
{
	(void)key;
	return parse_list(text, field, text_is_email, why);
}

static int parse_groups(const struct config_key *key, const char *text, void *field,
			struct err *why)
{
	(void)key;
	return *text ? parse_list(text, field, is_group, why) : 0;
}

static int parse_hosts(const struct config_key *key, const char *text, void *field, struct err *why)
{
	(void)key;
	return parse_list(text, field, text_is_host_name, why);
}

/* An OAuth scope goes into JSON, into a space-separated list and to clients line by line. */
static bool is_scope(const char *text)
{
	static const char scheme[] = "https://";
	const size_t len = strlen(text);

	if (strncmp(text, scheme, sizeof(scheme) - 1) != 0 || len == sizeof(scheme) - 1)
		return false;
	for (const char *p = text; *p; p++)
		if (*p <= ' ' || *p >= 0x7f || strchr("\"'`\\", *p))
			return false;
	return true;
}

static int parse_scopes(const struct config_key *key, const char *text, void *field,
			struct err *why)
{
	(void)key;
	return parse_list(text, field, is_scope, why);
}

#define STRING(name) const struct config_type config_type_##name = {parse_##name, release_string}
#define LIST(name) const struct config_type config_type_##name = {parse_##name, release_list}

const struct config_type config_type_yes_no = {.parse = parse_yes_no};
const struct config_type config_type_unsigned = {.parse = parse_unsigned};
const struct config_type config_type_duration = {.parse = parse_duration};
const struct config_type config_type_log_level = {.parse = parse_log_level};
const struct config_type config_type_sharing = {.parse = parse_sharing};
const struct config_type config_type_listen = {.parse = parse_listen};
const struct config_type config_type_session_listen = {.parse = parse_session_listen};
const struct config_type config_type_peers = {parse_peers, release_peers};

STRING(path);
STRING(audit_log);
STRING(source);
STRING(backend);
STRING(group);
STRING(project);
STRING(number);
STRING(location);
STRING(email);
STRING(host);
STRING(host_port);
STRING(url);

LIST(emails);
LIST(groups);
LIST(hosts);
LIST(scopes);
