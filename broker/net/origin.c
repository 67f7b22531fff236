/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/net/origin.h"

#include "broker/base/alloc.h"
#include "broker/base/parse.h"
#include "broker/net/address.h"

#include <string.h>
#include <strings.h>

static const char https[] = "https://";
static const char http[] = "http://";

/* What stands behind the scheme, or NULL. */
static const char *behind_scheme(const char *url)
{
	if (!strncmp(url, https, sizeof(https) - 1))
		return url + sizeof(https) - 1;
	return strncmp(url, http, sizeof(http) - 1) ? NULL : url + sizeof(http) - 1;
}

/* The host without brackets, the caller's; *end is what follows. NULL where a bracket is open. */
static char *copy_host(const char *text, const char **end)
{
	const bool bracketed = text[0] == '[';
	const char *const host = text + (bracketed ? 1 : 0);
	const size_t len = strcspn(host, bracketed ? "]" : ":");

	if (bracketed && !host[len])
		return NULL;
	*end = host + len + (bracketed ? 1 : 0);
	return xstrndup(host, len);
}

bool text_is_host_port(const char *text)
{
	const char *end = NULL;
	uint64_t port;
	struct address address;
	AUTO_FREE char *host = copy_host(text, &end);

	if (!host)
		return false;
	if (text[0] == '[') {
		if (!strchr(host, ':') || address_parse_ip(&address, host))
			return false;
	} else if (!text_is_host_name(host)) {
		return false;
	}
	return !*end || (*end == ':' && !parse_uint(end + 1, 1, UINT16_MAX, &port));
}

uint16_t host_port_port(const char *text, uint16_t port)
{
	const char *end = NULL;
	uint64_t written = port;
	AUTO_FREE char *host = copy_host(text, &end);

	if (host && *end == ':' && parse_uint(end + 1, 1, UINT16_MAX, &written))
		return port;
	return (uint16_t)written;
}

size_t host_port_addresses(const char *text, uint16_t port, struct address out[static 2])
{
	static const char *const loopbacks[] = {"127.0.0.1", "::1"};
	const char *end = NULL;
	uint64_t written = port;
	size_t count = 0;
	AUTO_FREE char *host = copy_host(text, &end);

	if (!host || (*end == ':' && parse_uint(end + 1, 1, UINT16_MAX, &written)))
		return 0;
	if (!strcasecmp(host, "localhost")) {
		while (count < ARRAY_LEN(loopbacks) &&
		       !address_parse_ip(&out[count], loopbacks[count]))
			count++;
	} else if (!address_parse_ip(&out[0], host)) {
		count = 1;
	}
	for (size_t i = 0; i < count; i++)
		address_set_port(&out[i], (uint16_t)written);
	return count;
}

/* What may not stand in an origin, or NULL. */
static const char *find_excess(const char *rest)
{
	const char *const at = strchr(rest, '@');
	const char *tail = rest + strcspn(rest, "/?#");

	if (at && at < tail)
		return "holds a user";
	if (*tail == '/')
		tail++;
	switch (*tail) {
	case '\0':
		return NULL;
	case '?':
		return "holds a query";
	case '#':
		return "holds a fragment";
	default:
		return "holds a path";
	}
}

int origin_parse(const char *url, char **out, const char **reason)
{
	const char *const rest = behind_scheme(url);

	*reason = rest ? find_excess(rest) : NULL;
	if (!rest || *reason)
		return -1;
	const size_t len = strcspn(rest, "/");
	AUTO_FREE char *host_port = xstrndup(rest, len);
	if (!text_is_host_port(host_port))
		return -1;
	*out = xstrndup(url, (size_t)(rest - url) + len);
	return 0;
}

bool origin_is_plain(const char *origin)
{
	return !strncmp(origin, http, sizeof(http) - 1);
}

bool origin_is_loopback(const char *origin)
{
	const char *const rest = behind_scheme(origin);
	const char *end;
	struct address address;
	AUTO_FREE char *host = rest ? copy_host(rest, &end) : NULL;

	if (!host)
		return false;
	if (!strcmp(host, "localhost"))
		return true;
	return !address_parse_ip(&address, host) && address_is_loopback(&address);
}
