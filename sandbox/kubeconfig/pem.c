/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/kubeconfig/pem.h"

#include "broker/base/buf.h"
#include "sandbox/kubeconfig/base64.h"

#include <stdbool.h>
#include <string.h>

static const char *const certificate_labels[] = {"CERTIFICATE", NULL};
static const char *const key_labels[] = {"PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", NULL};

struct pem_rule {
	const char *const *labels;
	size_t max_blocks;
	const char *otherwise;
};

static const struct pem_rule rules[] = {
	[PEM_CERTIFICATES] = {certificate_labels, 1024,
			      "holds something else than PEM certificates"},
	[PEM_PRIVATE_KEY] = {key_labels, 1, "holds something else than one PEM private key"},
};

/* ASN.1 (X.690) tags. */
enum {
	DER_BIT_STRING = 0x03,
	DER_SEQUENCE = 0x30,
};

struct bytes {
	const unsigned char *at;
	size_t len;
};

/* Takes one element with that tag off the front of `from`. */
static bool der_take(struct bytes *from, unsigned char tag, struct bytes *content)
{
	if (from->len < 2 || from->at[0] != tag)
		return false;
	size_t len = from->at[1];
	size_t head = 2;
	if (len & 0x80) {
		const size_t count = len & 0x7f;
		if (!count || count > 4 || from->len < 2 + count)
			return false;
		len = 0;
		for (size_t i = 0; i < count; i++)
			len = len << 8 | from->at[2 + i];
		head += count;
	}
	if (len > from->len - head)
		return false;
	*content = (struct bytes){from->at + head, len};
	from->at += head + len;
	from->len -= head + len;
	return true;
}

/* RFC 5280 section 4.1: the part that is signed, the algorithm, the signature. */
static bool der_is_certificate(struct bytes der)
{
	struct bytes body;
	struct bytes part;

	return der_take(&der, DER_SEQUENCE, &body) && !der.len &&
	       der_take(&body, DER_SEQUENCE, &part) && der_take(&body, DER_SEQUENCE, &part) &&
	       der_take(&body, DER_BIT_STRING, &part) && !body.len;
}

static bool der_is_sequence(struct bytes der)
{
	struct bytes body;

	return der_take(&der, DER_SEQUENCE, &body) && !der.len;
}

/* The line at *text without blanks at its end; *text moves behind it. */
static struct bytes take_line(const char **text, const char *end)
{
	const char *const start = *text;
	const char *stop = memchr(start, '\n', (size_t)(end - start));

	*text = stop ? stop + 1 : end;
	if (!stop)
		stop = end;
	while (stop > start && strchr(" \t\r", stop[-1]) && stop[-1])
		stop--;
	return (struct bytes){(const unsigned char *)start, (size_t)(stop - start)};
}

/* Whether the line is -----VERB LABEL-----. */
static bool is_boundary(struct bytes line, const char *verb, const char *label)
{
	const char *const parts[] = {"-----", verb, " ", label, "-----"};

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		const size_t len = strlen(parts[i]);
		if (line.len < len || memcmp(line.at, parts[i], len) != 0)
			return false;
		line.at += len;
		line.len -= len;
	}
	return !line.len;
}

/* Reads up to the END line of the label, which must be there. */
static bool take_block(const char **text, const char *end, const char *label, struct buf *body)
{
	while (*text < end) {
		const struct bytes line = take_line(text, end);
		if (is_boundary(line, "END", label))
			return true;
		if (!line.len || memchr(line.at, '-', line.len) ||
		    buf_append(body, line.at, line.len))
			return false;
	}
	return false;
}

static bool check_block(enum pem_kind kind, const struct buf *body)
{
	AUTO_BUF struct buf der;

	buf_init_sensitive(&der, body->len);
	if (!body->len || base64_decode(&der, body->data, body->len) || !der.len)
		return false;
	const struct bytes bytes = {(const unsigned char *)der.data, der.len};
	return kind == PEM_CERTIFICATES ? der_is_certificate(bytes) : der_is_sequence(bytes);
}

static const char *label_of(const struct pem_rule *rule, struct bytes line)
{
	for (const char *const *label = rule->labels; *label; label++)
		if (is_boundary(line, "BEGIN", *label))
			return *label;
	return NULL;
}

const char *pem_check(enum pem_kind kind, const char *text, size_t len)
{
	const struct pem_rule *const rule = &rules[kind];
	const char *const end = text + len;
	size_t blocks = 0;

	while (text < end) {
		const struct bytes line = take_line(&text, end);
		if (!line.len)
			continue;
		AUTO_BUF struct buf body;
		buf_init_sensitive(&body, len);
		const char *const label = label_of(rule, line);
		if (!label || ++blocks > rule->max_blocks ||
		    !take_block(&text, end, label, &body) || !check_block(kind, &body))
			return rule->otherwise;
	}
	return blocks ? NULL : "is empty";
}
