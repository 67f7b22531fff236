/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/plan/shut.h"

#include "broker/base/err.h"
#include "broker/base/log.h"
#include "broker/base/strv.h"
#include "broker/net/address.h"

#include <string.h>

/* postern-door has the same ones for a start without --shut. */
static const char *const defaults[] = {
	"169.254.0.0/16",     /* the metadata servers of most clouds, and of ECS and EKS */
	"168.63.129.16/32",   /* Azure's wire server */
	"100.100.100.200/32", /* Alibaba Cloud */
	"192.0.0.192/32",     /* Oracle Cloud */
	"fd20:ce::/32",	      /* Google Cloud */
	"fd00:ec2::/32",      /* AWS */
};

/* What the sandbox finds at its own loopback, and must find nowhere else. */
static const char *const metadata[] = {"169.254.169.254", "fd20:ce::254"};

int shut_check(const char *cidr, struct err *err)
{
	struct cidr parsed;
	struct quoted q;

	if (!cidr_parse(&parsed, cidr) && parsed.bits)
		return 0;
	return err_set(err, ERR_USAGE,
		       "--shut %s: must be a network such as 169.254.0.0/16 or an address",
		       quote_str(&q, cidr));
}

static bool holds(const struct strv *list, const struct address *address)
{
	struct cidr cidr;

	for (size_t i = 0; i < list->count; i++)
		if (!cidr_parse(&cidr, list->items[i]) && cidr_contains(&cidr, address))
			return true;
	return false;
}

int shut_check_list(const struct strv *list, struct err *err)
{
	struct address address;

	if (list->count > SHUT_MAX)
		return err_set(err, ERR_USAGE, "--shut: %zu networks; at most %d fit", list->count,
			       SHUT_MAX);
	for (size_t i = 0; i < ARRAY_LEN(metadata); i++)
		if (!address_parse_ip(&address, metadata[i]) && !holds(list, &address))
			return err_set(err, ERR_USAGE,
				       "--shut: the networks must hold %s, or the sandbox could "
				       "go round its endpoint; add --shut %s",
				       metadata[i], metadata[i]);
	return 0;
}

void shut_default(struct strv *list)
{
	for (size_t i = 0; i < ARRAY_LEN(defaults); i++)
		strv_add(list, defaults[i], strlen(defaults[i]));
}

static bool is_metadata(const char *text)
{
	for (size_t i = 0; i < ARRAY_LEN(metadata); i++)
		if (!strcmp(text, metadata[i]))
			return true;
	return false;
}

void shut_keep_nameservers(const struct strv *list, const struct strv *nameservers,
			   struct strv *kept)
{
	struct address address;
	char text[ADDRESS_TEXT_SIZE];

	for (size_t i = 0; i < nameservers->count; i++) {
		if (address_parse_ip(&address, nameservers->items[i]))
			continue;
		address_format_ip(&address, text);
		if (holds(list, &address) && !is_metadata(text) && !strv_contains(kept, text))
			strv_add(kept, text, strlen(text));
	}
}
