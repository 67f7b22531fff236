/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/credential/google_url.h"

#include "broker/base/parse.h"
#include "broker/base/strv.h"
#include "broker/net/address.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

struct origin {
	bool tls;
	char host[256]; /* an IPv6 address with its brackets */
	uint64_t port;
};

static int read_port(const char *text, size_t len, uint64_t *port)
{
	char digits[6];

	if (len >= sizeof(digits))
		return -1;
	memcpy(digits, text, len);
	digits[len] = '\0';
	return parse_uint(digits, 1, 65535, port);
}

/* Where the port's colon is in "host:port", or the end. */
static size_t host_len(const char *authority, size_t len)
{
	const char *const bracket = memchr(authority, ']', len);
	const size_t from = bracket ? (size_t)(bracket - authority) : 0;
	const char *const colon = memchr(authority + from, ':', len - from);

	return colon ? (size_t)(colon - authority) : len;
}

/* Stricter than a URL parser: a name or address, a port, and nothing that two parsers read in two ways. */
static int origin_read(const char *url, struct origin *origin)
{
	origin->tls = !strncasecmp(url, "https://", strlen("https://"));
	if (!origin->tls && strncasecmp(url, "http://", strlen("http://")) != 0)
		return -1;
	const char *const authority = strstr(url, "://") + strlen("://");
	const size_t len = strcspn(authority, "/?#");
	const size_t name_len = host_len(authority, len);
	if (!name_len || name_len >= sizeof(origin->host))
		return -1;
	memcpy(origin->host, authority, name_len);
	origin->host[name_len] = '\0';
	if (!text_is_of(origin->host, origin->host[0] == '[' ? "[]:." : ".-"))
		return -1;
	origin->port = origin->tls ? 443 : 80;
	if (name_len == len)
		return 0;
	return read_port(authority + name_len + 1, len - name_len - 1, &origin->port);
}

static bool host_is_below(const char *host, const char *domain)
{
	const size_t host_bytes = strlen(host);
	const size_t domain_bytes = strlen(domain);

	if (!strcasecmp(host, domain))
		return true;
	if (host_bytes <= domain_bytes || !domain_bytes)
		return false;
	const char *const tail = host + host_bytes - domain_bytes;
	return tail[-1] == '.' && !strcasecmp(tail, domain);
}

bool google_url_is_trusted(const char *url, const char *universe_domain, const char *endpoint)
{
	struct origin origin;
	struct origin configured;

	if (origin_read(url, &origin))
		return false;
	if (!origin_read(endpoint, &configured) && origin.tls == configured.tls &&
	    origin.port == configured.port && !strcasecmp(origin.host, configured.host))
		return true;
	if (!origin.tls || origin.port != 443 || origin.host[0] == '[')
		return false;
	return host_is_below(origin.host, universe_domain) ||
	       (!strcasecmp(universe_domain, "googleapis.com") &&
		!strcasecmp(origin.host, "accounts.google.com"));
}

static bool is_loopback(const struct origin *origin)
{
	struct address address;
	char literal[sizeof(origin->host)];
	const size_t len = strlen(origin->host);

	if (!strcasecmp(origin->host, "localhost"))
		return true;
	memcpy(literal, origin->host, len + 1);
	if (literal[0] == '[' && literal[len - 1] == ']') {
		literal[len - 1] = '\0';
		return !address_parse_ip(&address, literal + 1) && address_is_loopback(&address);
	}
	return !address_parse_ip(&address, literal) && address_is_loopback(&address);
}

bool subject_url_is_allowed(const char *url, const struct strv *hosts, bool http_loopback)
{
	struct origin origin;

	if (origin_read(url, &origin))
		return false;
	/* What is no printable ASCII has no place in a request line. */
	for (const char *p = url; *p; p++)
		if (*p <= ' ' || *p > '~')
			return false;
	if (!origin.tls)
		return http_loopback && is_loopback(&origin);
	for (size_t i = 0; hosts && i < hosts->count; i++)
		if (!strcasecmp(hosts->items[i], origin.host))
			return true;
	return false;
}
