/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/net/address.h"

#include "broker/base/parse.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static void set_v4(struct address *out, const void *ip, in_port_t port)
{
	*out = (struct address){.len = sizeof(out->v4)};
	out->v4.sin_family = AF_INET;
	out->v4.sin_port = port;
	memcpy(&out->v4.sin_addr, ip, sizeof(out->v4.sin_addr));
}

static void set_v6(struct address *out, const struct in6_addr *ip, in_port_t port, uint32_t scope)
{
	if (IN6_IS_ADDR_V4MAPPED(ip)) {
		set_v4(out, ip->s6_addr + 12, port);
		return;
	}
	*out = (struct address){.len = sizeof(out->v6)};
	out->v6.sin6_family = AF_INET6;
	out->v6.sin6_port = port;
	out->v6.sin6_addr = *ip;
	out->v6.sin6_scope_id = scope;
}

static int parse_v4(struct address *out, const char *text)
{
	struct in_addr ip;

	if (inet_pton(AF_INET, text, &ip) != 1)
		return -1;
	set_v4(out, &ip, 0);
	return 0;
}

static int parse_v6(struct address *out, const char *text)
{
	struct in6_addr ip;

	if (inet_pton(AF_INET6, text, &ip) != 1)
		return -1;
	set_v6(out, &ip, 0, 0);
	return 0;
}

int address_parse_ip(struct address *out, const char *text)
{
	return strchr(text, ':') ? parse_v6(out, text) : parse_v4(out, text);
}

int address_parse(struct address *out, const char *text)
{
	const bool bracketed = text[0] == '[';
	const char *const host = text + (bracketed ? 1 : 0);
	const size_t host_len = strcspn(host, bracketed ? "]" : ":");
	const char *end = host + host_len;
	char ip[INET6_ADDRSTRLEN];
	uint64_t port;
	struct address address;

	if (bracketed && *end == ']')
		end++;
	else if (bracketed)
		return -1;
	if (*end != ':' || host_len >= sizeof(ip) || parse_uint(end + 1, 0, UINT16_MAX, &port))
		return -1;
	memcpy(ip, host, host_len);
	ip[host_len] = '\0';
	if (bracketed ? parse_v6(&address, ip) : parse_v4(&address, ip))
		return -1;
	address_set_port(&address, (uint16_t)port);
	*out = address;
	return 0;
}

int address_from_sockaddr(struct address *out, const struct sockaddr *sa, socklen_t len)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;

	/* Copied: the caller's bytes may be of any alignment. */
	if (len >= sizeof(v4) && sa->sa_family == AF_INET) {
		memcpy(&v4, sa, sizeof(v4));
		set_v4(out, &v4.sin_addr, v4.sin_port);
		return 0;
	}
	if (len >= sizeof(v6) && sa->sa_family == AF_INET6) {
		memcpy(&v6, sa, sizeof(v6));
		set_v6(out, &v6.sin6_addr, v6.sin6_port, v6.sin6_scope_id);
		return 0;
	}
	return -1;
}

/* The bytes of the IP, NULL where there is none. */
static const unsigned char *ip_bytes(const struct address *address, size_t *len)
{
	switch (address->len ? address->any.sa_family : AF_UNSPEC) {
	case AF_INET:
		*len = sizeof(address->v4.sin_addr);
		return (const unsigned char *)&address->v4.sin_addr;
	case AF_INET6:
		*len = sizeof(address->v6.sin6_addr);
		return address->v6.sin6_addr.s6_addr;
	default:
		*len = 0;
		return NULL;
	}
}

const char *address_format_ip(const struct address *address, char text[static ADDRESS_TEXT_SIZE])
{
	size_t len;
	const unsigned char *const ip = ip_bytes(address, &len);

	text[0] = '\0';
	if (ip)
		(void)inet_ntop(address->any.sa_family, ip, text, ADDRESS_TEXT_SIZE);
	return text;
}

const char *address_format(const struct address *address, char text[static ADDRESS_TEXT_SIZE])
{
	char ip[ADDRESS_TEXT_SIZE];

	address_format_ip(address, ip);
	(void)snprintf(text, ADDRESS_TEXT_SIZE, strchr(ip, ':') ? "[%.45s]:%u" : "%.45s:%u", ip,
		       (unsigned)address_port(address));
	return text;
}

uint16_t address_port(const struct address *address)
{
	if (!address->len)
		return 0;
	return ntohs(address->any.sa_family == AF_INET6 ? address->v6.sin6_port :
							  address->v4.sin_port);
}

void address_set_port(struct address *address, uint16_t port)
{
	if (address->any.sa_family == AF_INET6)
		address->v6.sin6_port = htons(port);
	else
		address->v4.sin_port = htons(port);
}

bool address_is_loopback(const struct address *address)
{
	size_t len;
	const unsigned char *const ip = ip_bytes(address, &len);

	return ip && (len == 4 ? ip[0] == 127 : IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr));
}

bool address_is_wildcard(const struct address *address)
{
	static const unsigned char zeroes[16];
	size_t len;
	const unsigned char *const ip = ip_bytes(address, &len);

	return ip && memcmp(ip, zeroes, len) == 0;
}

bool address_same_ip(const struct address *a, const struct address *b)
{
	size_t a_len;
	size_t b_len;
	const unsigned char *const a_ip = ip_bytes(a, &a_len);
	const unsigned char *const b_ip = ip_bytes(b, &b_len);

	if (!a_ip || !b_ip || a_len != b_len || memcmp(a_ip, b_ip, a_len) != 0)
		return false;
	return a->any.sa_family == AF_INET || a->v6.sin6_scope_id == b->v6.sin6_scope_id;
}

bool address_is_multicast(const struct address *address)
{
	size_t len;
	const unsigned char *const ip = ip_bytes(address, &len);

	if (!ip)
		return false;
	return len == 4 ? ip[0] >= 224 : ip[0] == 0xff;
}

bool address_is_link_local_metadata(const struct address *address)
{
	static const char *const servers[] = {
		"169.254.169.254", /* every cloud */
		"fd00:ec2::254",   /* EC2 */
		"fd20:ce::254",	   /* GCE */
	};

	for (size_t i = 0; i < ARRAY_LEN(servers); i++) {
		struct address server;
		if (!address_parse_ip(&server, servers[i]) && address_same_ip(&server, address))
			return true;
	}
	return false;
}

/* True where all bits behind the first `bits` of `len` bytes are 0. */
static bool host_bits_clear(const unsigned char *bytes, size_t len, unsigned bits)
{
	for (size_t i = bits / 8; i < len; i++) {
		const unsigned kept = i == bits / 8 ? bits % 8 : 0;
		if (bytes[i] & (0xffU >> kept))
			return false;
	}
	return true;
}

int cidr_parse(struct cidr *out, const char *text)
{
	const size_t ip_len = strcspn(text, "/");
	char ip[INET6_ADDRSTRLEN];
	struct address address;
	size_t len;

	if (ip_len >= sizeof(ip))
		return -1;
	memcpy(ip, text, ip_len);
	ip[ip_len] = '\0';
	if (address_parse_ip(&address, ip))
		return -1;
	const unsigned char *const bytes = ip_bytes(&address, &len);
	uint64_t bits = len * 8;
	if (text[ip_len] && parse_uint(text + ip_len + 1, 0, bits, &bits))
		return -1;
	if (!host_bits_clear(bytes, len, (unsigned)bits))
		return -1;
	*out = (struct cidr){.family = address.any.sa_family, .bits = (unsigned)bits};
	memcpy(out->prefix, bytes, len);
	return 0;
}

void cidr_of(struct cidr *out, const struct address *address, unsigned bits)
{
	size_t len;
	const unsigned char *const bytes = ip_bytes(address, &len);

	if (bits > len * 8)
		bits = (unsigned)(len * 8);
	*out = (struct cidr){.family = address->any.sa_family, .bits = bits};
	if (out->family == AF_INET6)
		out->scope = address->v6.sin6_scope_id;
	memcpy(out->prefix, bytes, (bits + 7) / 8);
	if (bits % 8)
		out->prefix[bits / 8] &= (unsigned char)(0xff00U >> bits % 8);
}

bool cidr_contains(const struct cidr *cidr, const struct address *address)
{
	size_t len;
	const unsigned char *const ip = ip_bytes(address, &len);
	const size_t whole = cidr->bits / 8;
	const unsigned rest = cidr->bits % 8;

	if (!ip || address->any.sa_family != cidr->family)
		return false;
	if (cidr->scope && cidr->scope != address->v6.sin6_scope_id)
		return false;
	if (memcmp(ip, cidr->prefix, whole) != 0)
		return false;
	return !rest || ((ip[whole] ^ cidr->prefix[whole]) & (0xff00U >> rest) & 0xffU) == 0;
}
