/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metadata endpoint: its addresses, and the sockets that hold port 80 for the broker and against
 * everybody else.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* How much of IPv6 the namespace's loopback interface has. */
enum ipv6 {
	IPV6_ABSENT, /* the kernel has none */
	IPV6_OFF, /* lo has disable_ipv6: no endpoint there, and nobody else's is reached either */
	IPV6_ON,
};

struct endpoint {
	uint8_t family; /* AF_INET, AF_INET6 */
	uint8_t size;	/* of the address */
	uint8_t address[16];
};

#define ENDPOINTS_MAX 2

/* 169.254.169.254 and fd20:ce::254. */
extern const struct endpoint ENDPOINTS[ENDPOINTS_MAX];

/* The listening sockets, and guards that are never closed: the process ends with them. */
struct endpoint_sockets {
	int listeners[ENDPOINTS_MAX];
	size_t count; /* 1 (IPv4), or 2 with IPv6_ON */
};

/*
 * The addresses must be there. A listener is bound to the device lo, for an address on lo is answered on
 * every interface otherwise. Ends the process on failure.
 */
void endpoint_listen(enum ipv6 ipv6, struct endpoint_sockets *out);
