/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any request: the status is of the closed set, and nothing is answered but to a request that keeps the
 * rules, which are read from the contract a second time here.
 *
 * An input is lines: flags, the method, the target, then headers as "Name: value". The flags are one
 * byte each: "m" malformed, "b" body, "p" peer refused, "n" the identity with a number, "4", "6" or "x"
 * for the local address.
 */
#include "emulator/emulator.h"

#include "broker/base/compiler.h"
#include "broker/base/strv.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MAX_HEADERS 32
/* More than libFuzzer makes by itself: a port may have any number of digits. */
#define VALUE_MAX_BYTES 8192

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct line {
	const char *text;
	size_t len;
};

/* Takes a line off the front of the input. */
static struct line next_line(struct line *input)
{
	const char *const end = input->len ? memchr(input->text, '\n', input->len) : NULL;
	const struct line line = {input->text, end ? (size_t)(end - input->text) : input->len};
	const size_t used = end ? line.len + 1 : line.len;

	input->text += used;
	input->len -= used;
	return line;
}

static bool line_has(struct line line, char c)
{
	return line.len && memchr(line.text, c, line.len);
}

static struct emulator_header header_of(struct line line)
{
	const char *const colon = line.len ? memchr(line.text, ':', line.len) : NULL;
	const size_t name_len = colon ? (size_t)(colon - line.text) : line.len;
	const size_t used = colon ? name_len + 1 : name_len;

	return (struct emulator_header){line.text, name_len, line.text + used, line.len - used};
}

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	(void)fprintf(stderr, "fuzz_emulator: %s\n", what);
	abort();
}

/* How many headers have the name; the value of the last, cut into `value` without blanks around it. */
static int header_value(const struct emulator_request *request, const char *name, char *value,
			size_t size)
{
	int count = 0;

	for (size_t i = 0; i < request->header_count; i++) {
		const struct emulator_header *const header = &request->headers[i];
		if (header->name_len != strlen(name) ||
		    strncasecmp(header->name, name, header->name_len) != 0)
			continue;
		count++;
		/* What holds a NUL is no text, and neither flavor nor host. */
		if (header->value_len >= size || memchr(header->value, '\0', header->value_len)) {
			value[0] = '\0';
			continue;
		}
		(void)snprintf(value, size, "%.*s", (int)header->value_len, header->value);
		const size_t blanks = strspn(value, " \t");
		memmove(value, value + blanks, strlen(value + blanks) + 1);
		while (*value && strchr(" \t", value[strlen(value) - 1]))
			value[strlen(value) - 1] = '\0';
	}
	return count;
}

/* The address in one spelling, IPv4 for IPv4-mapped; as it is where it is no address. */
static void canonical_address(char *text, size_t size)
{
	struct in6_addr v6;
	static const char mapped[] = "::ffff:";

	if (inet_pton(AF_INET6, text, &v6) != 1 || !inet_ntop(AF_INET6, &v6, text, (socklen_t)size))
		return;
	const char *const last = strrchr(text, ':');
	if (last && strchr(last, '.') && !strncmp(text, mapped, strlen(mapped)))
		memmove(text, last + 1, strlen(last));
}

static bool host_is_ours(char *host, const char *local_ip)
{
	static const char *const names[] = {"metadata", "metadata.google.internal", "localhost",
					    "host.containers.internal", "gateway.example"};
	char ours[INET6_ADDRSTRLEN];
	char *theirs = host;

	/* From behind: digits, a colon; then brackets or a dot. */
	size_t at = strlen(host);
	while (at && isdigit((unsigned char)host[at - 1]))
		at--;
	if (at && host[at - 1] == ':' && (host[0] != '[' || (at > 1 && host[at - 2] == ']')))
		host[at - 1] = '\0';
	const size_t len = strlen(host);
	const bool bracketed = len > 2 && host[0] == '[' && host[len - 1] == ']';
	if (bracketed) {
		host[len - 1] = '\0';
		theirs = host + 1;
		if (!strchr(theirs, ':'))
			return false;
	} else {
		if (strchr(host, ':'))
			return false;
		if (len && theirs[len - 1] == '.')
			theirs[len - 1] = '\0';
	}
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!bracketed && !strcasecmp(theirs, names[i]))
			return true;
	(void)snprintf(ours, sizeof(ours), "%s", local_ip);
	canonical_address(ours, sizeof(ours));
	canonical_address(theirs, sizeof(ours));
	return !strcmp(ours, theirs);
}

static bool target_is_plain(const struct emulator_request *request)
{
	for (size_t i = 0; i < request->target_len; i++)
		if (!isgraph((unsigned char)request->target[i]) || request->target[i] == '#')
			return false;
	return request->target_len && request->target[0] == '/';
}

/* What an answer needs: every rule of the contract but that the path is in the table. */
static void require_rules(const struct emulator_request *request)
{
	char value[VALUE_MAX_BYTES];

	require(!request->malformed && !request->has_body && !request->peer_refused, "flags");
	require(header_value(request, "x-forwarded-for", value, sizeof(value)) == 0, "forwarded");
	require(header_value(request, "host", value, sizeof(value)) == 1, "one Host");
	require(host_is_ours(value, request->local_ip), "our Host");
	require(header_value(request, "metadata-flavor", value, sizeof(value)) == 1, "one flavor");
	require(!strcmp(value, "Google"), "the flavor");
	require(target_is_plain(request), "plain target");
}

static void judge(const struct emulator_request *request, bool whole,
		  const struct emulator_reply *reply)
{
	static const unsigned statuses[] = {200, 400, 403, 404, 405, 413};
	const bool read = !strcmp(request->method, "GET") || !strcmp(request->method, "HEAD");
	bool known = false;

	if (!whole) {
		require_rules(request);
		require(read, "a token for a method that reads");
		require(reply->route == EMULATOR_ROUTE_TOKEN, "a token's route");
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
		known |= reply->status == statuses[i];
	require(known, "a status of the closed set");
	require(reply->body && strlen(reply->body) == reply->body_len, "a body of text");
	require(reply->content_type != NULL, "a content type");
	require((reply->status == 200) == (reply->refusal == EMULATOR_REFUSAL_NONE), "refusal");
	require((reply->status == 405) == (reply->allow != NULL), "Allow");
	if (reply->status == 200) {
		require_rules(request);
		require(read, "a method that reads");
		require(reply->route != EMULATOR_ROUTE_TOKEN, "no token");
		require(!strstr(reply->body, "access_token"), "no token in a body");
	}
	if (reply->status == 404)
		require(!strcmp(reply->body, "Not Found.\n") && !reply->close, "the one 404");
}

/* Made once: nothing of a request stays in an emulator. */
static const struct emulator *emulator_of(bool numbered)
{
	static struct emulator *emulators[2];
	const struct strv scopes = {(char *[]){"https://scope.example/a"}, 1};

	if (!emulators[numbered])
		emulators[numbered] = emulator_new(&(struct emulator_identity){
			.email = "a@p.example",
			.project = "p",
			.project_number = numbered ? "7" : NULL,
			.universe_domain = "u.example",
			.scopes = &scopes,
			.advertised_host = "gateway.example",
		});
	return emulators[numbered];
}

static const char *local_ip_of(struct line flags)
{
	if (line_has(flags, '6'))
		return "::1";
	return line_has(flags, 'x') ? "::ffff:172.17.0.1" : "172.17.0.1";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct emulator_header headers[MAX_HEADERS];
	struct line input = {(const char *)data, size};
	char method[16];
	struct emulator_reply reply;

	const struct line flags = next_line(&input);
	const struct line verb = next_line(&input);
	const struct line target = next_line(&input);
	(void)snprintf(method, sizeof(method), "%.*s", (int)verb.len, verb.len ? verb.text : "");
	struct emulator_request request = {
		.method = method,
		.target = target.text,
		.target_len = target.len,
		.headers = headers,
		.local_ip = local_ip_of(flags),
		.malformed = line_has(flags, 'm'),
		.has_body = line_has(flags, 'b'),
		.peer_refused = line_has(flags, 'p'),
	};
	while (input.len && request.header_count < MAX_HEADERS)
		headers[request.header_count++] = header_of(next_line(&input));

	const bool whole = emulator_answer(emulator_of(line_has(flags, 'n')), &request, &reply);
	judge(&request, whole, &reply);
	return 0;
}
