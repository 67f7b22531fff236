/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/host.h"

#include "broker/base/compiler.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

/* Besides the advertised one. The first three are the names that clients have built in. */
static const char *const fixed_names[] = {
	"metadata.google.internal",
	"metadata",
	"localhost",
	"host.containers.internal",
};

struct name {
	const char *text;
	size_t len;
};

/* Nothing, or a colon and digits: RFC 3986 section 3.2.3 lets a port be empty. */
static bool is_port(const char *text, size_t len)
{
	if (!len)
		return true;
	if (text[0] != ':')
		return false;
	for (size_t i = 1; i < len; i++)
		if (text[i] < '0' || text[i] > '9')
			return false;
	return true;
}

/* "name", "name." and "[address]", each with or without a port. */
static bool split(const char *value, size_t len, struct name *name)
{
	const char *const end = value + len;
	const char *rest = end;

	if (!len)
		return false;
	if (value[0] == '[') {
		const char *const bracket = memchr(value, ']', len);
		if (!bracket)
			return false;
		*name = (struct name){value + 1, (size_t)(bracket - value) - 1};
		rest = bracket + 1;
		/* Brackets are for IPv6 alone. */
		if (!memchr(name->text, ':', name->len))
			return false;
	} else {
		const char *const colon = memchr(value, ':', len);
		if (colon)
			rest = colon;
		*name = (struct name){value, (size_t)(rest - value)};
		if (name->len && name->text[name->len - 1] == '.')
			name->len--;
	}
	return name->len && is_port(rest, (size_t)(end - rest));
}

static bool same_name(struct name name, const char *text)
{
	return strlen(text) == name.len && !strncasecmp(name.text, text, name.len);
}

/* IPv4 becomes IPv4-mapped IPv6 (RFC 4291 section 2.5.5.2), which is what a dual-stack socket says. */
static bool read_address(struct name name, struct in6_addr *out)
{
	char text[INET6_ADDRSTRLEN];
	struct in_addr v4;

	/* A NUL would end the text for inet_pton() before it ends for us. */
	if (name.len >= sizeof(text) || memchr(name.text, '\0', name.len))
		return false;
	memcpy(text, name.text, name.len);
	text[name.len] = '\0';
	if (inet_pton(AF_INET6, text, out) == 1)
		return true;
	if (inet_pton(AF_INET, text, &v4) != 1)
		return false;
	*out = (struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff}};
	memcpy(out->s6_addr + 12, &v4, sizeof(v4));
	return true;
}

static bool same_address(struct name name, const char *text)
{
	struct in6_addr ours;
	struct in6_addr theirs;

	return read_address(name, &theirs) &&
	       read_address((struct name){text, strlen(text)}, &ours) &&
	       IN6_ARE_ADDR_EQUAL(&ours, &theirs);
}

bool host_names_endpoint(const char *value, size_t len, const char *advertised_host,
			 const char *local_ip)
{
	struct name name;

	if (!split(value, len, &name))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(fixed_names); i++)
		if (same_name(name, fixed_names[i]))
			return true;
	/* As nearly every client writes it; reading an address costs more than the rest of the guards. */
	if (same_name(name, local_ip) || (advertised_host && same_name(name, advertised_host)))
		return true;
	/* The advertised host may be an address too, of a translation in front of us. */
	return same_address(name, local_ip) ||
	       (advertised_host && same_address(name, advertised_host));
}
