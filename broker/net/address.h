/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Socket addresses and networks as values. Numeric only: nothing here asks a resolver. An IPv4
 * address in IPv6 clothes (::ffff:a.b.c.d) is always held as the IPv4 address it is.
 */
#pragma once

#include "broker/base/compiler.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* An IP address and a port. Zeroed it is unset. */
struct address {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	};
	socklen_t len; /* of the member in use, as bind(2) wants it; 0: unset */
};

/* A network. */
struct cidr {
	sa_family_t family;
	unsigned bits;
	uint32_t scope;		  /* the interface of a link-local network; 0: any */
	unsigned char prefix[16]; /* network byte order; bits behind the prefix are 0 */
};

/* Room for "[IPv6]:PORT" with the NUL. */
#define ADDRESS_TEXT_SIZE 56

static inline bool address_is_set(const struct address *address)
{
	return address->len != 0;
}

/* "127.0.0.1:8174" or "[::1]:0"; the port is 0 to 65535, digits only. -1 on anything else. */
NODISCARD int address_parse(struct address *out, const char *text);
/* "127.0.0.1" or "::1", without brackets; the port becomes 0. -1 on anything else. */
NODISCARD int address_parse_ip(struct address *out, const char *text);
/* -1 where it is of another family than IPv4 and IPv6, or too short. */
NODISCARD int address_from_sockaddr(struct address *out, const struct sockaddr *sa, socklen_t len);

/* "ADDR:PORT", IPv6 in brackets. Returns text. */
const char *address_format(const struct address *address, char text[static ADDRESS_TEXT_SIZE]);
/* "ADDR". Returns text. */
const char *address_format_ip(const struct address *address, char text[static ADDRESS_TEXT_SIZE]);

/* In host byte order. */
uint16_t address_port(const struct address *address);
void address_set_port(struct address *address, uint16_t port);

/* 127.0.0.0/8 or ::1. */
bool address_is_loopback(const struct address *address);
/* 0.0.0.0 or ::. */
bool address_is_wildcard(const struct address *address);
/* 224.0.0.0/4, the reserved 240.0.0.0/4 with 255.255.255.255, or ff00::/8: many, or none. */
bool address_is_multicast(const struct address *address);
/* A metadata server of a cloud: 169.254.169.254, fd00:ec2::254, fd20:ce::254. */
bool address_is_link_local_metadata(const struct address *address);
/* The same IP, with the same scope where it has one; ports do not count. Unset equals nothing. */
bool address_same_ip(const struct address *a, const struct address *b);

/*
 * "10.0.0.0/8", or an address alone for the one host. -1 on anything else, bits set behind the
 * prefix included.
 */
NODISCARD int cidr_parse(struct cidr *out, const char *text);
/* The network of an address, in its scope; bits beyond the family's width count as all of it. */
void cidr_of(struct cidr *out, const struct address *address, unsigned bits);
/* A network with a scope, such as fe80::/64 of one interface, holds what comes from there only. */
bool cidr_contains(const struct cidr *cidr, const struct address *address);
