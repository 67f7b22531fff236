/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/session_wish.h"

#include "broker/attach_message.h"
#include "broker/base/alloc.h"
#include "broker/base/json.h"
#include "broker/base/log.h"
#include "broker/base/random.h"
#include "broker/base/secret.h"
#include "broker/endpoint.h"
#include "broker/google/rfc3339.h"
#include "broker/profile.h"
#include "broker/recipe/recipe.h"

#include <stdio.h>
#include <string.h>

struct reading {
	struct session_wish *wish;
	enum preflight *preflight;
	struct session_refusal *refusal;
};

static int refuse(struct session_refusal *refusal, const char *key, const char *expect)
{
	struct quoted q;

	refusal->code = "bad_request";
	(void)snprintf(refusal->message, sizeof(refusal->message), "%s: %s", quote_str(&q, key),
		       expect);
	return -1;
}

static bool is_printable(const char *text)
{
	for (; *text; text++)
		if (*text < 0x20 || *text > 0x7e)
			return false;
	return true;
}

static int read_profile(const struct reading *reading, const json_t *value)
{
	if (!json_is_string(value))
		return -1;
	reading->wish->profile = xstrdup(json_string_value(value));
	return 0;
}

static int read_ttl(const struct reading *reading, const json_t *value)
{
	if (!json_is_integer(value) || json_integer_value(value) < 1)
		return -1;
	reading->wish->ttl_s = json_integer_value(value);
	return 0;
}

static int read_label(const struct reading *reading, const json_t *value)
{
	const char *const label = json_string_value(value);

	if (json_is_null(value))
		return 0;
	if (!label || strlen(label) > SESSION_MAX_LABEL || !is_printable(label) ||
	    strlen(label) != json_string_length(value))
		return -1;
	reading->wish->label = xstrdup(label);
	return 0;
}

static int read_attach(const struct reading *reading, const json_t *value)
{
	const char *const text = json_string_value(value);

	for (enum attach_way way = ATTACH_GATEWAY; text && way <= ATTACH_INSIDE; way++)
		if (!strcmp(text, attach_way_name(way))) {
			reading->wish->attach = way;
			return 0;
		}
	return -1;
}

static int read_door(const struct reading *reading, const json_t *value)
{
	const char *const secret = json_get_string(value, "secret");

	if (json_is_null(value))
		return 0;
	if (!secret || json_object_size(value) != 1 ||
	    json_string_length(json_object_get(value, "secret")) != ATTACH_KEY_LEN ||
	    strspn(secret, "0123456789abcdef") != ATTACH_KEY_LEN)
		return -1;
	reading->wish->door_secret = secret_new(secret, ATTACH_KEY_LEN);
	return 0;
}

static int read_listen(const struct reading *reading, const json_t *value)
{
	struct address *const listen = &reading->wish->listen;
	const char *const text = json_string_value(value);

	if (json_is_null(value))
		return 0;
	if (!text || (address_parse_ip(listen, text) && address_parse(listen, text)))
		return -1;
	return address_is_wildcard(listen) || address_is_multicast(listen) ? -1 : 0;
}

static int read_pin(const struct reading *reading, const json_t *value)
{
	const char *const text = json_string_value(value);

	for (enum pin pin = PIN_LAUNCHER; text && pin <= PIN_FIRST; pin++)
		if (!strcmp(text, pin_name(pin))) {
			reading->wish->pin = pin;
			return 0;
		}
	return -1;
}

static int read_peers(const struct reading *reading, const json_t *value)
{
	struct session_wish *const wish = reading->wish;
	const json_t *item;
	size_t i;

	if (json_is_null(value))
		return 0;
	if (!json_array_size(value) || json_array_size(value) > ADMISSION_MAX_ADDRESSES)
		return -1;
	json_array_foreach(value, i, item) {
		struct address *const peer = &wish->peers[wish->peer_count];
		if (!json_is_string(item) || address_parse_ip(peer, json_string_value(item)))
			return -1;
		/* The same one twice is one. */
		bool known = false;
		for (size_t k = 0; k < wish->peer_count; k++)
			known = known || address_same_ip(&wish->peers[k], peer);
		wish->peer_count += !known;
	}
	return 0;
}

static int read_lease(const struct reading *reading, const json_t *value)
{
	if (!json_is_boolean(value))
		return -1;
	reading->wish->lease = json_is_true(value);
	return 0;
}

static int read_preflight(const struct reading *reading, const json_t *value)
{
	static const char *const names[] = {
		[PREFLIGHT_NONE] = "none",
		[PREFLIGHT_GRANT] = "grant",
		[PREFLIGHT_MINT] = "mint",
	};
	const char *const text = json_string_value(value);

	for (size_t i = 0; text && i < ARRAY_LEN(names); i++)
		if (!strcmp(text, names[i])) {
			*reading->preflight = (enum preflight)i;
			return 0;
		}
	return -1;
}

struct wish_key {
	const char *name;
	int (*read)(const struct reading *reading, const json_t *value);
	const char *expect;
};

static const struct wish_key post_keys[] = {
	{"profile", read_profile, "must be the name of a profile"},
	{"ttl_s", read_ttl, "must be a number of seconds from 1"},
	{"label", read_label, "must be at most 128 printable ASCII characters"},
	{"attach", read_attach, "must be \"gateway\" or \"inside\""},
	{"door", read_door, "must be {\"secret\":…} with the 32 hex digits of before"},
	{"listen", read_listen, "must be an IP address, with or without a port"},
	{"pin", read_pin, "must be \"launcher\" or \"first\""},
	{"peer", read_peers, "must be a list of 1 to 8 IP addresses"},
	{"lease", read_lease, "must be true or false"},
	{"preflight", read_preflight, "must be \"none\", \"grant\" or \"mint\""},
};

static const struct wish_key patch_keys[] = {
	{"peer", read_peers, "must be a list of 1 to 8 IP addresses"},
};

static const struct wish_key *find_key(const struct wish_key *keys, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(keys[i].name, name))
			return &keys[i];
	return NULL;
}

static int read_object(const struct reading *reading, const struct wish_key *keys, size_t count,
		       const json_t *body)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)body, name, value) {
		const struct wish_key *const key = find_key(keys, count, name);
		if (!key)
			return refuse(reading->refusal, name, "no such key here");
		if (key->read(reading, value))
			return refuse(reading->refusal, name, key->expect);
	}
	return 0;
}

static json_t *read_body(const char *body, size_t len, struct session_refusal *refusal)
{
	json_t *const object = json_read_object(body, len);

	if (!object)
		(void)refuse(refusal, "body", "must be one JSON object without a key twice");
	return object;
}

/* What goes together. */
static int check_attach(const struct session_wish *wish, const json_t *body,
			struct session_refusal *refusal)
{
	static const char *const gateway_keys[] = {"listen", "pin", "peer"};

	if (wish->attach == ATTACH_GATEWAY)
		return wish->door_secret ? refuse(refusal, "door", "needs \"attach\":\"inside\"") :
					   0;
	for (size_t i = 0; i < ARRAY_LEN(gateway_keys); i++) {
		const json_t *const value = json_object_get(body, gateway_keys[i]);
		if (value && !json_is_null(value))
			return refuse(refusal, gateway_keys[i],
				      "does not go with \"attach\":\"inside\"");
	}
	return wish->lease ? 0 :
			     refuse(refusal, "lease", "must be true with \"attach\":\"inside\"");
}

int session_wish_read(const char *body, size_t len, struct session_wish *wish,
		      enum preflight *preflight, struct session_refusal *refusal)
{
	const struct reading reading = {wish, preflight, refusal};
	json_auto_t *object = read_body(body, len, refusal);

	*preflight = PREFLIGHT_NONE;
	wish->pin = PIN_FIRST;
	random_hex(wish->id, sizeof(wish->id));
	if (!object || read_object(&reading, post_keys, ARRAY_LEN(post_keys), object) ||
	    check_attach(wish, object, refusal))
		return -1;
	return wish->profile ? 0 : refuse(refusal, "profile", "is required");
}

int session_peers_read(const char *body, size_t len, struct session_wish *wish,
		       struct session_refusal *refusal)
{
	const struct reading reading = {.wish = wish, .refusal = refusal};
	json_auto_t *object = read_body(body, len, refusal);

	if (!object || read_object(&reading, patch_keys, ARRAY_LEN(patch_keys), object))
		return -1;
	return wish->peer_count ? 0 : refuse(refusal, "peer", "is required");
}

void session_wish_deinit(struct session_wish *wish)
{
	free(wish->profile);
	free(wish->label);
	secret_unref(wish->door_secret);
	*wish = (struct session_wish){0};
}

static void set_variable(void *ctx, const char *name, const char *value)
{
	(void)json_object_set_new(ctx, name, json_string(value));
}

static json_t *environment_json(const struct session *session)
{
	char endpoint[SESSION_ENDPOINT_SIZE];
	char host[SESSION_ENDPOINT_SIZE];
	json_t *const variables = json_object();

	session_endpoint(session, endpoint);
	session_host(session, host); /* what NO_PROXY takes */
	session->profile->backend->environment(endpoint, host, set_variable, variables);
	return variables;
}

static json_t *peers_json(const struct admission *admission)
{
	char text[ADDRESS_TEXT_SIZE];

	if (!admission->count)
		return json_null();
	json_t *const list = json_array();
	for (size_t i = 0; i < admission->count; i++)
		(void)json_array_append_new(list,
					    json_string(address_format_ip(&admission->addresses[i],
									  text)));
	return list;
}

json_t *session_json(const struct session *session)
{
	const struct admission *const admission = endpoint_admission(session->endpoint);
	struct endpoint_counts counts;
	char endpoint[SESSION_ENDPOINT_SIZE];
	char listen[ADDRESS_TEXT_SIZE];
	char created[RFC3339_SIZE];
	char expires[RFC3339_SIZE];

	endpoint_counts(session->endpoint, &counts);
	session_endpoint(session, endpoint);
	rfc3339_format(created, session->created_wall_ms);
	rfc3339_format(expires, session->expires_wall_ms);
	json_t *const json =
		json_pack("{s:s,s:s,s:s?,s:I,s:s,s:s,s:s,s:s?,s:o,s:s,s:s,s:b,s:o,s:{s:I,s:I,s:I}}",
			  "id", session->id, "profile", session->profile->settings->name, "label",
			  session->label, "owner", (json_int_t)session->owner, "attach",
			  attach_way_name(session->attachment ? ATTACH_INSIDE : ATTACH_GATEWAY),
			  "endpoint", endpoint, "listen",
			  address_format(endpoint_address(session->endpoint), listen), "pin",
			  pin_name(admission->pin), "peer", peers_json(admission), "created_at",
			  created, "expires_at", expires, "lease", session->leased, "env",
			  environment_json(session), "counters", "requests",
			  (json_int_t)counts.requests, "tokens", (json_int_t)counts.tokens,
			  "refused", (json_int_t)counts.refused);
	if (!json)
		abort();
	return json;
}
