/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/base/json.h"

#include "broker/base/alloc.h"

#include <malloc.h>
#include <string.h>

static void *json_alloc(size_t size)
{
	return xmalloc(size);
}

static void json_clear_and_free(void *p)
{
	/* jansson does not say how large the block was; the allocator knows. */
	if (p)
		explicit_bzero(p, malloc_usable_size(p));
	free(p);
}

void json_clear_on_free(void)
{
	/* jansson grows its buffers by these two as well: it has no realloc of its own. */
	json_set_alloc_funcs(json_alloc, json_clear_and_free);
}

json_t *json_read_object(const char *bytes, size_t len)
{
	json_error_t error;

	json_t *const value = json_loadb(bytes ? bytes : "", len, JSON_REJECT_DUPLICATES, &error);
	if (json_is_object(value))
		return value;
	json_decref(value);
	return NULL;
}

bool json_takes(const char *text)
{
	json_auto_t *string = json_string(text);

	return string;
}

const char *json_get_string(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}
