/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The door's command line: which addresses are shut, and which resolvers among them stay open.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stdint.h>

#define CIDRS_MAX 32

struct cidr {
	uint8_t address[16]; /* IPv4: the first four bytes */
	uint8_t family;	     /* AF_INET, AF_INET6 */
	uint8_t bits;
};

struct cidr_list {
	struct cidr cidrs[CIDRS_MAX];
	size_t count;
};

struct door_options {
	const char *attach; /* the directory of the broker's socket; argv's, like the next */
	const char *ticket; /* a file */
	struct cidr_list shut, dns;
};

/* "ADDRESS/BITS", or "ADDRESS" for that one alone. -1: is none, is everything, has bits set beyond BITS. */
NODISCARD int cidr_parse(const char *text, struct cidr *out);

/* Ends the process where the line is wrong, and for --version. */
void options_parse(char **argv, struct door_options *out);
