/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/door/options.h"

#include "sandbox/door/exit_code.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define USAGE \
	"usage: postern-door [--shut CIDR]... [--dns ADDRESS]... [--attach DIR] [--ticket FILE]"

/* Where clouds serve credentials: link-local (all), Azure, Alibaba, Oracle; over IPv6 Google and AWS. */
static const char *const DEFAULT_SHUT[] = {
	"169.254.0.0/16", "168.63.129.16/32", "100.100.100.200/32",
	"192.0.0.192/32", "fd20:ce::/32",     "fd00:ec2::/32",
};

int cidr_parse(const char *text, struct cidr *out)
{
	char address[INET6_ADDRSTRLEN] = "";
	struct cidr found = {.family = strchr(text, ':') ? AF_INET6 : AF_INET};
	const size_t whole = found.family == AF_INET6 ? 128 : 32;
	const size_t length = strcspn(text, "/");
	const char *const bits = text + length + 1;

	if (length >= sizeof(address))
		return -1;
	memcpy(address, text, length);
	found.bits = (uint8_t)whole;
	if (text[length]) {
		const unsigned long number = strtoul(bits, NULL, 10);

		if (bits[strspn(bits, "0123456789")] || number == 0 || number > whole)
			return -1;
		found.bits = (uint8_t)number;
	}
	if (inet_pton(found.family, address, found.address) != 1)
		return -1;
	for (size_t i = found.bits; i < whole; i++) {
		if (found.address[i / 8] & (0x80U >> i % 8))
			return -1;
	}
	*out = found;
	return 0;
}

static void add(struct cidr_list *list, const char *text)
{
	if (list->count == CIDRS_MAX)
		die(EXIT_USAGE, "too many addresses:", text);
	if (cidr_parse(text, &list->cidrs[list->count++]))
		die(EXIT_USAGE, "not ADDRESS/BITS, or with bits set beyond BITS:", text);
}

void options_parse(char **argv, struct door_options *out)
{
	*out = (struct door_options){.attach = "/attach", .ticket = "/door/ticket"};
	while (*++argv) {
		const char *const flag = *argv;

		if (strcmp(flag, "--version") == 0) {
			static const char version[] = "postern-door " POSTERN_VERSION "\n";

			demand(write(STDOUT_FILENO, version, sizeof(version) - 1) > 0, EXIT_USAGE,
			       flag);
			_exit(EXIT_ENDED);
		}
		if (!argv[1])
			die(EXIT_USAGE, USAGE ", not", flag);
		argv++;
		if (strcmp(flag, "--shut") == 0)
			add(&out->shut, *argv);
		else if (strcmp(flag, "--dns") == 0 && !strchr(*argv, '/'))
			add(&out->dns, *argv);
		else if (strcmp(flag, "--attach") == 0)
			out->attach = *argv;
		else if (strcmp(flag, "--ticket") == 0)
			out->ticket = *argv;
		else
			die(EXIT_USAGE, USAGE ", not", flag);
	}
	for (size_t i = 0; i < ARRAY_LEN(DEFAULT_SHUT) && out->shut.count == i; i++)
		add(&out->shut, DEFAULT_SHUT[i]);
}
