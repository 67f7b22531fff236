/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/kubeconfig/kubeconfig_yaml.h"

#include "broker/base/alloc.h"
#include "broker/base/err.h"

#include <string.h>
#include <yaml.h>

#define MORE_THAN_ONE "more than one document; keep one and delete what follows the \"---\""
#define NO_ANCHORS "an anchor, alias or merge key (&, *, <<); write its value out"
#define NO_TAGS "a tag (!); delete it"

/* A map or list that is still open. */
struct frame {
	struct yaml_value *value;
	char *key; /* of the member whose value comes next; NULL: a key comes next, or a list */
	unsigned key_line;
};

struct reader {
	yaml_parser_t parser;
	const char *name;
	struct yaml_value *root;
	struct frame stack[YAML_MAX_DEPTH];
	size_t depth;
	size_t values;
	bool document; /* one has begun */
	bool done;
	struct err *err;
};

static void clear_text(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
}

void yaml_value_deinit(struct yaml_value *value)
{
	struct yaml_value *stack[YAML_MAX_DEPTH + 1] = {value};
	size_t depth = 1;

	while (depth) {
		struct yaml_value *const top = stack[depth - 1];
		if (top->count) {
			struct yaml_member *const last = &top->members[--top->count];
			free(last->key);
			stack[depth++] = &last->value;
			continue;
		}
		clear_text(top->text);
		free(top->members);
		*top = (struct yaml_value){0};
		depth--;
	}
}

const struct yaml_value *yaml_get(const struct yaml_value *map, const char *key)
{
	if (!map || map->kind != YAML_KIND_MAP)
		return NULL;
	for (size_t i = 0; i < map->count; i++)
		if (!strcmp(map->members[i].key, key))
			return &map->members[i].value;
	return NULL;
}

const char *yaml_get_text(const struct yaml_value *map, const char *key)
{
	const struct yaml_value *const value = yaml_get(map, key);

	return yaml_is_empty(value) || value->kind != YAML_KIND_TEXT ? NULL : value->text;
}

bool yaml_is_empty(const struct yaml_value *value)
{
	static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};

	if (!value)
		return true;
	if (value->kind != YAML_KIND_TEXT)
		return value->kind == YAML_KIND_LIST && !value->count;
	for (size_t i = 0; value->plain && i < ARRAY_LEN(nulls); i++)
		if (!strcmp(value->text, nulls[i]))
			return true;
	return !*value->text;
}

static int refuse(struct reader *reader, unsigned line, const char *what)
{
	return err_set(reader->err, ERR_INVALID, "%s:%u: %s", reader->name, line, what);
}

static unsigned line_of(const yaml_mark_t *mark)
{
	return (unsigned)mark->line + 1;
}

static struct frame *top_frame(struct reader *reader)
{
	return reader->depth ? &reader->stack[reader->depth - 1] : NULL;
}

static bool key_is_next(struct reader *reader)
{
	const struct frame *const top = top_frame(reader);

	return top && top->value->kind == YAML_KIND_MAP && !top->key;
}

static int take_key(struct reader *reader, const char *text, size_t len, unsigned line)
{
	struct frame *const top = top_frame(reader);

	if (!len || len > YAML_MAX_KEY_BYTES || strlen(text) != len)
		return refuse(reader, line, "a key that is empty, too long or holds a NUL");
	if (!strcmp(text, "<<"))
		return refuse(reader, line, NO_ANCHORS);
	if (top->value->count >= YAML_MAX_KEYS)
		return refuse(reader, line, "more than 256 keys in one map");
	if (yaml_get(top->value, text))
		return refuse(reader, line, "a key for the second time; keep one of the two");
	top->key = xstrndup(text, len);
	top->key_line = line;
	return 0;
}

/* The place of the next value: a new member of what is open, or the root. Borrowed. */
static struct yaml_value *add_value(struct reader *reader, unsigned line)
{
	struct frame *const top = top_frame(reader);

	if (++reader->values > YAML_MAX_VALUES) {
		(void)refuse(reader, line, "more than 65536 values; keep the contexts you need");
		return NULL;
	}
	if (!top)
		return reader->root;
	struct yaml_value *const parent = top->value;
	/* Full whenever the count is a power of two from 4 on. */
	if (!parent->count || (parent->count >= 4 && !(parent->count & (parent->count - 1)))) {
		const size_t room = parent->count ? 2 * parent->count : 4;
		parent->members = xreallocarray(parent->members, room, sizeof(*parent->members));
	}
	struct yaml_member *const member = &parent->members[parent->count++];
	char *const key = TAKE(top->key);
	*member = (struct yaml_member){
		.key = key,
		.line = parent->kind == YAML_KIND_MAP ? top->key_line : line,
	};
	return &member->value;
}

static int on_scalar(struct reader *reader, const yaml_event_t *event)
{
	const unsigned line = line_of(&event->start_mark);
	const char *const text = (const char *)event->data.scalar.value;
	const size_t len = event->data.scalar.length;

	if (event->data.scalar.anchor)
		return refuse(reader, line, NO_ANCHORS);
	if (event->data.scalar.tag)
		return refuse(reader, line, NO_TAGS);
	if (key_is_next(reader))
		return take_key(reader, text, len, line);
	if (strlen(text) != len)
		return refuse(reader, line, "a NUL inside a text; delete it");
	struct yaml_value *const value = add_value(reader, line);
	if (!value)
		return -1;
	*value = (struct yaml_value){
		.kind = YAML_KIND_TEXT,
		.line = line,
		.plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE,
		.text = xstrndup(text, len),
	};
	return 0;
}

static int on_open(struct reader *reader, enum yaml_kind kind, const yaml_event_t *event)
{
	const unsigned line = line_of(&event->start_mark);
	const bool map = kind == YAML_KIND_MAP;

	if (map ? event->data.mapping_start.anchor : event->data.sequence_start.anchor)
		return refuse(reader, line, NO_ANCHORS);
	if (map ? event->data.mapping_start.tag : event->data.sequence_start.tag)
		return refuse(reader, line, NO_TAGS);
	if (key_is_next(reader))
		return refuse(reader, line, "a key that is no text; write a name");
	if (reader->depth == YAML_MAX_DEPTH)
		return refuse(reader, line, "maps and lists nested more than 16 deep");
	struct yaml_value *const value = add_value(reader, line);
	if (!value)
		return -1;
	*value = (struct yaml_value){.kind = kind, .line = line};
	reader->stack[reader->depth++] = (struct frame){.value = value};
	return 0;
}

static int on_document(struct reader *reader, const yaml_event_t *event)
{
	if (reader->document)
		return refuse(reader, line_of(&event->start_mark), MORE_THAN_ONE);
	reader->document = true;
	return 0;
}

static int on_event(struct reader *reader, const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		return on_document(reader, event);
	case YAML_ALIAS_EVENT:
		return refuse(reader, line_of(&event->start_mark), NO_ANCHORS);
	case YAML_SCALAR_EVENT:
		return on_scalar(reader, event);
	case YAML_SEQUENCE_START_EVENT:
		return on_open(reader, YAML_KIND_LIST, event);
	case YAML_MAPPING_START_EVENT:
		return on_open(reader, YAML_KIND_MAP, event);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		reader->depth--;
		return 0;
	case YAML_STREAM_END_EVENT:
		reader->done = true;
		return 0;
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_DOCUMENT_END_EVENT:
		return 0;
	}
	return 0;
}

/* libyaml's words are constants; they name no byte of the file. */
static int refuse_syntax(struct reader *reader)
{
	const yaml_parser_t *const parser = &reader->parser;
	const bool placed = parser->error == YAML_SCANNER_ERROR ||
			    parser->error == YAML_PARSER_ERROR;

	return err_set(reader->err, ERR_INVALID, "%s:%u: not YAML: %s", reader->name,
		       line_of(placed ? &parser->problem_mark : &parser->mark),
		       parser->problem ? parser->problem : "cannot be read");
}

static int read_events(struct reader *reader)
{
	while (!reader->done) {
		yaml_event_t event;
		if (!yaml_parser_parse(&reader->parser, &event))
			return refuse_syntax(reader);
		const int result = on_event(reader, &event);
		if (event.type == YAML_SCALAR_EVENT)
			explicit_bzero(event.data.scalar.value, event.data.scalar.length);
		yaml_event_delete(&event);
		if (result)
			return -1;
	}
	return reader->document ? 0 : refuse(reader, 1, "empty; it must hold a kubeconfig");
}

/* What libyaml has buffered may hold a token. */
static void clear_parser(yaml_parser_t *parser)
{
	const size_t raw = (size_t)(parser->raw_buffer.end - parser->raw_buffer.start);
	const size_t decoded = (size_t)(parser->buffer.end - parser->buffer.start);

	explicit_bzero(parser->raw_buffer.start, raw);
	explicit_bzero(parser->buffer.start, decoded);
	yaml_parser_delete(parser);
}

int yaml_read(struct yaml_value *out, const char *name, const char *bytes, size_t len,
	      struct err *err)
{
	struct reader reader = {.name = name, .root = out, .err = err};

	if (len > YAML_MAX_BYTES)
		return err_set(err, ERR_INVALID, "%s: larger than 1 MiB", name);
	if (!yaml_parser_initialize(&reader.parser))
		return err_set(err, ERR_SYSTEM, "%s: libyaml does not start", name);
	yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&reader.parser, (const unsigned char *)(bytes ? bytes : ""),
				     len);
	const int result = read_events(&reader);
	for (size_t i = 0; i < reader.depth; i++)
		free(reader.stack[i].key);
	clear_parser(&reader.parser);
	if (result)
		yaml_value_deinit(out);
	return result;
}
