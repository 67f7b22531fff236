/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/reply.h"

#include "broker/base/buf.h"
#include "broker/base/secret.h"

#include <inttypes.h>

const char reply_type_text[] = "application/text";
const char reply_type_json[] = "application/json";

#define REFUSAL(name, number, text)                                       \
	.status = (number), .content_type = "text/plain", .body = (text), \
	.body_len = sizeof(text) - 1, .refusal = EMULATOR_REFUSAL_##name

static const struct emulator_reply refusals[EMULATOR_REFUSAL_COUNT] = {
	[EMULATOR_REFUSAL_MALFORMED] = {REFUSAL(MALFORMED, 400, "Bad Request.\n"), .close = true},
	[EMULATOR_REFUSAL_BODY] = {REFUSAL(BODY, 413, "Request bodies are not accepted.\n"),
				   .close = true},
	[EMULATOR_REFUSAL_PEER] = {REFUSAL(PEER, 403, "Forbidden.\n")},
	[EMULATOR_REFUSAL_FORWARDED] = {REFUSAL(FORWARDED, 403,
						"Request with X-Forwarded-For is not allowed.\n")},
	[EMULATOR_REFUSAL_HOST] = {REFUSAL(HOST, 403, "Host is not this server's.\n")},
	[EMULATOR_REFUSAL_FLAVOR] = {REFUSAL(FLAVOR, 403,
					     "Missing Metadata-Flavor:Google header.\n")},
	[EMULATOR_REFUSAL_PATH] = {REFUSAL(PATH, 404, "Not Found.\n")},
	[EMULATOR_REFUSAL_METHOD] = {REFUSAL(METHOD, 405, "Method Not Allowed.\n"),
				     .allow = "GET, HEAD"},
};

const struct emulator_reply *reply_refusal(enum emulator_refusal refusal)
{
	return &refusals[refusal];
}

/* As the real server answers, errors too: Node takes no reply without the first one (gcp-metadata#657). */
const char *const *emulator_common_headers(void)
{
	static const char *const headers[] = {
		"Metadata-Flavor",	  "Google",	      "Server",
		"Metadata Server for VM", "X-XSS-Protection", "0",
		"X-Frame-Options",	  "SAMEORIGIN",	      NULL,
	};

	return headers;
}

static void add_escaped(struct buf *out, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		const unsigned char byte = (unsigned char)bytes[i];
		if (byte < 0x20 || byte > 0x7e || byte == '"' || byte == '\\')
			buf_addf(out, "\\u%04x", byte);
		else
			buf_add_bytes(out, &bytes[i], 1);
	}
}

void emulator_token_reply(const struct secret *token, int64_t expires_in_s, struct buf *out,
			  struct emulator_reply *reply)
{
	/* The number is unquoted: only Node takes a string for it. */
	buf_add(out, "{\"access_token\":\"");
	add_escaped(out, secret_bytes(token), secret_len(token));
	buf_addf(out, "\",\"expires_in\":%" PRId64 ",\"token_type\":\"Bearer\"}", expires_in_s);
	*reply = (struct emulator_reply){
		.status = 200,
		.content_type = reply_type_json,
		.body = out->data,
		.body_len = out->len,
		.route = EMULATOR_ROUTE_TOKEN,
	};
}

/* JSON because .NET parses it and the others show it as it is. No library retries 403, all retry 503. */
void emulator_token_refusal(bool for_now, const char *description, const char *ref, struct buf *out,
			    struct emulator_reply *reply)
{
	buf_addf(out, "{\"error\":\"%s\",\"error_description\":\"%s (ref %s)\"}",
		 for_now ? "temporarily_unavailable" : "access_denied", description, ref);
	*reply = (struct emulator_reply){
		.status = for_now ? 503 : 403,
		.content_type = reply_type_json,
		.body = out->data,
		.body_len = out->len,
		.route = EMULATOR_ROUTE_TOKEN,
	};
}
