/* SPDX-License-Identifier: Apache-2.0 */
/* The URL of the API server: which ones may be reached from a sandbox, and how. */
#include "broker/base/alloc.h"
#include "broker/base/err.h"
#include "broker/base/parse.h"
#include "broker/net/address.h"
#include "broker/net/origin.h"
#include "sandbox/kubeconfig/kubeconfig.h"
#include "sandbox/kubeconfig/kubeconfig_impl.h"
#include "sandbox/kubeconfig/kubeconfig_yaml.h"

#include <arpa/inet.h>
#include <string.h>

#define MAX_URL_BYTES 2048

#define NOT_A_URL "has a server that is no https://HOST[:PORT][/PATH]; write it so"
#define PLAIN_HTTP                                                                      \
	"has a server of plain http, to which a token would go in the open; give it a " \
	"certificate and write https://"
#define LINK_LOCAL                                                                                \
	"has a server at a link-local or metadata address, which a sandbox may not reach; write " \
	"the API server's own address"
#define ODD_NUMBER "has a server whose address is not written as four decimal numbers; write it so"
#define REWRITTEN                                                                                \
	"has a server on this host's loopback: in the sandbox it is reached by the host's name " \
	"there, and answers only if it listens on more than loopback (kind: run with --network " \
	"kind and its in-network name as server)"

/* A server, taken apart. */
struct server {
	char *host; /* without brackets */
	char *port; /* with its colon, or empty */
	const char *path;
};

enum reach {
	REACH_ORDINARY,
	REACH_LOOPBACK,
	REACH_LINK_LOCAL,
	REACH_ODD,
};

static const struct {
	const char *name;
	enum reach reach;
} names[] = {
	{"localhost", REACH_LOOPBACK},
	{"localhost.localdomain", REACH_LOOPBACK},
	{"ip6-localhost", REACH_LOOPBACK},
	{"ip6-loopback", REACH_LOOPBACK},
	{"metadata", REACH_LINK_LOCAL},
	{"metadata.google.internal", REACH_LINK_LOCAL},
	{"metadata.goog", REACH_LINK_LOCAL},
	{"instance-data", REACH_LINK_LOCAL},
	{"instance-data.ec2.internal", REACH_LINK_LOCAL},
};

static void server_deinit(struct server *server)
{
	free(server->host);
	free(server->port);
}

static bool ends_with(const char *text, const char *suffix)
{
	const size_t len = strlen(text);
	const size_t tail = strlen(suffix);

	return len > tail && !strcasecmp(text + len - tail, suffix);
}

static bool in_network(const struct address *address, const char *network)
{
	struct cidr cidr;

	return !cidr_parse(&cidr, network) && cidr_contains(&cidr, address);
}

static enum reach reach_of_address(const struct address *address)
{
	if (address_is_loopback(address) || address_is_wildcard(address))
		return REACH_LOOPBACK;
	if (address_is_link_local_metadata(address) || in_network(address, "169.254.0.0/16") ||
	    in_network(address, "fe80::/10"))
		return REACH_LINK_LOCAL;
	/* 0.0.0.0/8 is this host too (RFC 1122 section 3.2.1.3), in a form nobody means. */
	return in_network(address, "0.0.0.0/8") ? REACH_ODD : REACH_ORDINARY;
}

static enum reach reach_of(const char *host)
{
	struct address address;
	struct in_addr odd;

	if (!address_parse_ip(&address, host))
		return reach_of_address(&address);
	/* Resolvers read 0x7f.1 and 2130706433 as addresses too. */
	if (inet_aton(host, &odd))
		return REACH_ODD;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!strcasecmp(host, names[i].name))
			return names[i].reach;
	return ends_with(host, ".localhost") ? REACH_LOOPBACK : REACH_ORDINARY;
}

/* NULL, or why it is none that may cross. */
static const char *take_apart(const char *url, struct server *server)
{
	static const char https[] = "https://";

	if (!strncasecmp(url, "http://", strlen("http://")))
		return PLAIN_HTTP;
	if (strlen(url) > MAX_URL_BYTES || strncasecmp(url, https, sizeof(https) - 1) != 0)
		return NOT_A_URL;
	const char *const rest = url + sizeof(https) - 1;
	const size_t len = strcspn(rest, "/");
	AUTO_FREE char *host_port = xstrndup(rest, len);
	if (!text_is_host_port(host_port) || (rest[len] && !text_is_of(rest + len, "/-._~%:")))
		return NOT_A_URL;
	const bool bracketed = host_port[0] == '[';
	const char *const host = host_port + (bracketed ? 1 : 0);
	const size_t host_len = strcspn(host, bracketed ? "]" : ":");
	server->host = xstrndup(host, host_len);
	server->port = xstrdup(host + host_len + (bracketed ? 1 : 0));
	server->path = rest + len;
	return NULL;
}

static void rewrite(struct kubeconfig_reading *reading, const struct server *server)
{
	reading->server = xasprintf("https://%s%s%s", reading->options->loopback_host, server->port,
				    server->path);
	/* The certificate is the one for the name by which the host knows it. */
	if (!reading->tls_server_name)
		reading->tls_server_name =
			xstrdup(ends_with(server->host, ".localhost") ? server->host : "localhost");
	kubeconfig_warn(reading, KUBECONFIG_CLUSTER, REWRITTEN);
}

int kubeconfig_read_server(struct kubeconfig_reading *reading)
{
	const struct yaml_value *const url = reading->written.server;
	CLEANUP(server_deinit) struct server server = {0};

	if (!url)
		return kubeconfig_refuse(reading, KUBECONFIG_CLUSTER,
					 reading->entries[KUBECONFIG_CLUSTER].line,
					 "has no server; write https://HOST[:PORT]");
	const char *why = take_apart(url->text, &server);
	if (why)
		return kubeconfig_refuse(reading, KUBECONFIG_CLUSTER, url->line, why);
	switch (reach_of(server.host)) {
	case REACH_ORDINARY:
		reading->server = xstrdup(url->text);
		return 0;
	case REACH_LOOPBACK:
		rewrite(reading, &server);
		return 0;
	case REACH_LINK_LOCAL:
		why = LINK_LOCAL;
		break;
	case REACH_ODD:
		why = ODD_NUMBER;
		break;
	}
	return kubeconfig_refuse(reading, KUBECONFIG_CLUSTER, url->line, why);
}
