/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A listening socket that somebody else has opened in a network namespace of theirs, and offers: is it
 * what it must be before anything is served on it? And whose namespace is a socket's?
 */
#pragma once

#include "broker/base/compiler.h"
#include "broker/net/address.h"

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

struct err;

/* Of a network namespace's loopback interface, always (include/net/net_namespace.h of Linux). */
#define LOOPBACK_INTERFACE 1

/* What the kernel says of it. */
struct offered_socket {
	int domain;
	int type;
	int protocol;
	bool is_listening;
	bool shares_port;     /* SO_REUSEPORT: others may take connections away */
	struct address local; /* unset: of no address family of ours */
	char device[IFNAMSIZ];
	int interface; /* the device's index in the socket's own namespace */
	uint64_t netns;
};

/* What it must be. */
struct offered_socket_terms {
	struct address local;
	uint64_t netns;
};

/*
 * The cookie of the network namespace that the socket lives in: for one that was accepted from a socket
 * of the file system, the namespace of the client. -1 with errno before Linux 5.14.
 */
NODISCARD int socket_netns(int fd, uint64_t *out);

/* -1 where it is no socket, or the kernel does not tell. */
NODISCARD int offered_socket_read(int fd, struct offered_socket *out, struct err *err);
/* Pure. The error says what is wrong with it. */
NODISCARD int offered_socket_judge(const struct offered_socket *offered,
				   const struct offered_socket_terms *terms, struct err *err);
