/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/admission.h"

#include "broker/config.h"
#include "broker/net/bridges.h"

#include <string.h>

const char *pin_name(enum pin pin)
{
	switch (pin) {
	case PIN_NONE:
		return NULL;
	case PIN_LAUNCHER:
		return "launcher";
	case PIN_FIRST:
		return "first";
	}
	return NULL;
}

static bool is_pinned(const struct admission *admission, const struct address *address)
{
	for (size_t i = 0; i < admission->count; i++)
		if (address_same_ip(&admission->addresses[i], address))
			return true;
	return false;
}

static bool is_of_networks(const struct admission *admission, const struct peers_config *peers,
			   struct bridges *bridges, const struct address *peer)
{
	if (peers->automatic)
		return admission->loopback ? address_is_loopback(peer) :
					     bridges_contain(bridges, peer);
	for (size_t i = 0; i < peers->count; i++)
		if (cidr_contains(&peers->networks[i], peer))
			return true;
	return false;
}

enum admission_verdict admission_judge(const struct admission *admission,
				       const struct peers_config *peers, struct bridges *bridges,
				       const struct address *peer)
{
	if (admission->inside)
		return ADMISSION_YES;
	if (admission->count)
		return is_pinned(admission, peer) ? ADMISSION_YES : ADMISSION_NO;
	if (!is_of_networks(admission, peers, bridges, peer))
		return ADMISSION_NO;
	return admission->pin == PIN_LAUNCHER ? ADMISSION_LATER : ADMISSION_YES;
}

bool admission_may_pin(const struct admission *admission, struct bridges *bridges,
		       const struct address *address)
{
	if (address_is_wildcard(address) || address_is_multicast(address))
		return false;
	return admission->loopback || !bridges_own(bridges, address);
}

bool admission_spoken(struct admission *admission, struct bridges *bridges,
		      const struct address *peer)
{
	if (admission->pin != PIN_FIRST || admission->count ||
	    !admission_may_pin(admission, bridges, peer))
		return false;
	admission_pin(admission, peer, 1);
	return true;
}

bool admission_is_pinned_to(const struct admission *admission, const struct address *addresses,
			    size_t count)
{
	if (count != admission->count)
		return false;
	for (size_t i = 0; i < count; i++)
		if (!is_pinned(admission, &addresses[i]))
			return false;
	return true;
}

void admission_pin(struct admission *admission, const struct address *addresses, size_t count)
{
	memcpy(admission->addresses, addresses, count * sizeof(*addresses));
	admission->count = count;
}
