/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/contents.h"

#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/base/strv.h"
#include "emulator/routes.h"

#include <ctype.h>
#include <string.h>

/* Room for the longest configuration there can be: its lines have 4 KiB, two values are lists. */
#define CONTENT_MAX_BYTES ((size_t)64 * 1024)

static struct body body_copy(const struct buf *from)
{
	return (struct body){xstrndup(from->data, from->len), from->len};
}

static int append(const char *data, size_t len, void *out)
{
	return buf_append(out, data, len);
}

static struct body json_body(const json_t *value)
{
	AUTO_BUF struct buf out;

	buf_init(&out, CONTENT_MAX_BYTES);
	/* Cannot fail but for want of memory or a value that is not UTF-8. */
	if (json_dump_callback(value, append, &out, JSON_COMPACT | JSON_ENCODE_ANY))
		abort();
	return body_copy(&out);
}

/* A list has a line for each item. A single value has no newline: clients would take it for a part. */
static struct body value_body(const json_t *value)
{
	AUTO_BUF struct buf out;

	buf_init(&out, CONTENT_MAX_BYTES);
	buf_add(&out, "");
	for (size_t i = 0; i < json_array_size(value); i++)
		buf_addf(&out, "%s\n", json_string_value(json_array_get(value, i)));
	if (json_is_string(value))
		buf_add(&out, json_string_value(value));
	if (json_is_integer(value))
		buf_addf(&out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	return body_copy(&out);
}

static bool is_account(const char *name)
{
	return !strncmp(name, ROUTE_ACCOUNT, strlen(ROUTE_ACCOUNT));
}

static struct body listing_body(size_t directory, const struct content *contents, const char *email)
{
	AUTO_BUF struct buf out;

	buf_init(&out, CONTENT_MAX_BYTES);
	buf_add(&out, "");
	for (size_t i = directory + 1; i < route_count(); i++) {
		const char *const name = route_name_in(route_at(i), route_at(directory));
		if (!name || !contents[i].served)
			continue;
		if (is_account(name))
			buf_addf(&out, "default/\n%s/\n", email);
		else
			buf_addf(&out, "%s\n", name);
	}
	return body_copy(&out);
}

/* "service-accounts/" is "serviceAccounts" in JSON. */
static void add_camel_case(struct buf *out, const char *name)
{
	bool upper = false;

	for (; *name && *name != '/'; name++) {
		const char c = upper ? (char)toupper(*name) : *name;
		upper = c == '-';
		if (!upper)
			buf_add_bytes(out, &c, 1);
	}
}

static void set(json_t *object, const char *key, json_t *value)
{
	if (json_object_set(object, key, value))
		abort();
}

/* The object of what the directory holds; a token is no value and cannot come in. */
static json_t *recursive_value(size_t directory, json_t *const *values, const char *email)
{
	json_t *const object = json_object();

	for (size_t i = directory + 1; i < route_count(); i++) {
		const char *const name = route_name_in(route_at(i), route_at(directory));
		AUTO_BUF struct buf key;
		buf_init(&key, CONTENT_MAX_BYTES);
		if (!name || !values[i])
			continue;
		if (is_account(name)) {
			set(object, "default", values[i]);
			set(object, email, values[i]);
		} else {
			add_camel_case(&key, name);
			set(object, key.data, values[i]);
		}
	}
	return object;
}

struct content *contents_new(const struct emulator_identity *identity)
{
	const size_t count = route_count();
	struct content *const contents = xcalloc(count, sizeof(*contents));
	AUTO_FREE json_t **values = xcalloc(count, sizeof(json_t *));

	/* From the end, for a directory stands before what it holds. */
	for (size_t i = count; i-- > 0;) {
		const struct route *const route = route_at(i);
		struct content *const content = &contents[i];
		content->served = true;
		if (route_is_directory(route)) {
			values[i] = recursive_value(i, values, identity->email);
			content->text = listing_body(i, contents, identity->email);
			content->json = json_body(values[i]);
		} else if (route->value) {
			values[i] = route->value(identity);
			content->served = values[i] != NULL;
			if (!values[i])
				continue;
			content->text = value_body(values[i]);
			content->json = json_body(values[i]);
		}
	}
	for (size_t i = 0; i < count; i++)
		json_decref(values[i]);
	return contents;
}

void contents_free(struct content *contents)
{
	if (!contents)
		return;
	for (size_t i = 0; i < route_count(); i++) {
		free(contents[i].text.data);
		free(contents[i].json.data);
	}
	free(contents);
}
