/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/net/http_head.h"

#include "broker/net/http_connection.h"

#include <string.h>
#include <strings.h>

/* RFC 9110 section 5.6.2 */
static bool is_token(const char *text, size_t len)
{
	static const char others[] = "!#$%&'*+-.^_`|~";

	for (size_t i = 0; i < len; i++) {
		const char c = text[i];
		const bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
				   (c >= 'A' && c <= 'Z');
		if (!alnum && (!c || !strchr(others, c)))
			return false;
	}
	return len > 0;
}

static bool has_control(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		const unsigned char c = (unsigned char)text[i];
		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return true;
	}
	return false;
}

/*
 * The contiguity check. libmicrohttpd parses in place and leniently: folded lines, bare LF, NUL and
 * blanks in odd places change what it reports, and can forge a header's name. In what it reports of a
 * plain head each piece begins exactly where the one before ended; anything else is refused.
 */

/*
 * The byte behind a line of which a piece ends at `p`, or NULL where no CR LF was there. 0.9.75 has put
 * NUL over both bytes; 1.0 over the first one behind the piece, which is the CR or a trailing blank.
 */
static const char *behind_line(const char *p)
{
	if (p[0])
		return NULL;
	if (!p[1] || p[1] == '\n')
		return p + 2;
	p++;
	while (*p == ' ' || *p == '\t')
		p++;
	return p[0] == '\r' && p[1] == '\n' ? p + 2 : NULL;
}

/* The empty line that ends the head. */
static const char *behind_empty_line(const char *p)
{
	return (p[0] && p[0] != '\r') || (p[1] && p[1] != '\n') ? NULL : p + 2;
}

struct walk {
	const char *expected; /* where the next header must begin; NULL: not plain */
	struct http_header *headers;
	size_t count;
};

static enum MHD_Result walk_header(void *cls, enum MHD_ValueKind kind, const char *name,
				   size_t name_len, const char *value, size_t value_len)
{
	struct walk *const walk = cls;

	(void)kind;
	if (walk->count == HTTP_MAX_HEADERS || name != walk->expected ||
	    !is_token(name, name_len) || !value) {
		walk->expected = NULL;
		return MHD_NO;
	}
	const char *begin = name + name_len + 1;
	while (*begin == ' ' || *begin == '\t')
		begin++;
	const bool good = value == begin && !has_control(value, value_len);
	walk->headers[walk->count++] = (struct http_header){name, name_len, value, value_len};
	walk->expected = good ? behind_line(value + value_len) : NULL;
	return walk->expected ? MHD_YES : MHD_NO;
}

size_t http_head_size(struct MHD_Connection *mhd)
{
	const union MHD_ConnectionInfo *const info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

	return info ? info->header_size : 0;
}

bool http_head_read(struct MHD_Connection *mhd, struct http_head *head)
{
	struct walk walk = {.headers = head->headers};
	const char *const method = head->method;

	head->header_count = 0;
	if (!is_token(method, strlen(method)) || head->url != method + strlen(method) + 1 ||
	    strlen(head->version) != strlen("HTTP/1.1"))
		return false;
	if (head->version > head->url + head->target_len + 1)
		head->target_len++; /* a NUL in the target, which counts as a byte of it */
	else if (head->version != head->url + head->target_len + 1)
		return false;
	walk.expected = behind_line(head->version + strlen("HTTP/1.1"));
	if (!walk.expected)
		return false;
	(void)MHD_get_connection_values_n(mhd, MHD_HEADER_KIND, walk_header, &walk);
	head->header_count = walk.count;
	const char *const end = walk.expected;
	return end && behind_empty_line(end) == method + http_head_size(mhd);
}

static bool is_name(const char *name, size_t len, const char *wanted)
{
	return len == strlen(wanted) && !strncasecmp(name, wanted, len);
}

static void note_length(struct http_body_marks *marks, const char *value, size_t len)
{
	uint64_t length = 0;

	while (len && (value[len - 1] == ' ' || value[len - 1] == '\t'))
		len--;
	if (marks->length || !len)
		marks->conflict = true;
	for (size_t i = 0; i < len; i++) {
		if (value[i] < '0' || value[i] > '9')
			marks->conflict = true;
		if (__builtin_mul_overflow(length, (uint64_t)10, &length) ||
		    __builtin_add_overflow(length, (uint64_t)(value[i] - '0'), &length))
			length = UINT64_MAX;
	}
	marks->length = true;
	marks->length_bytes = length;
}

static enum MHD_Result note_body(void *cls, enum MHD_ValueKind kind, const char *name,
				 size_t name_len, const char *value, size_t value_len)
{
	struct http_body_marks *const marks = cls;

	(void)kind;
	if (is_name(name, name_len, "Transfer-Encoding"))
		marks->coded = true;
	else if (is_name(name, name_len, "Expect"))
		marks->expect = true;
	else if (is_name(name, name_len, "Content-Length"))
		note_length(marks, value ? value : "", value ? value_len : 0);
	return MHD_YES;
}

void http_head_body(struct MHD_Connection *mhd, struct http_body_marks *marks)
{
	*marks = (struct http_body_marks){0};
	(void)MHD_get_connection_values_n(mhd, MHD_HEADER_KIND, note_body, marks);
}
