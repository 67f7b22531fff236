/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/net/bridges.h"

#include "broker/base/alloc.h"
#include "broker/base/clock.h"
#include "broker/net/address.h"

#include <dirent.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#define REREAD_MS 1000
/* More interfaces addresses than any host of ours has; the rest is not trusted. */
#define MAX_ADDRESSES 4096
/* Links below one port. */
#define MAX_LINKS 64

struct bridges {
	const struct clock *clock;
	int64_t read_ms;
	bool read;
	struct cidr *networks;
	size_t network_count;
	struct address *own;
	size_t own_count;
};

struct bridges *bridges_new(const struct clock *clock)
{
	struct bridges *const bridges = xcalloc(1, sizeof(*bridges));

	bridges->clock = clock;
	return bridges;
}

static void forget(struct bridges *bridges)
{
	free(bridges->networks);
	free(bridges->own);
	bridges->networks = NULL;
	bridges->network_count = 0;
	bridges->own = NULL;
	bridges->own_count = 0;
}

void bridges_free(struct bridges *bridges)
{
	if (!bridges)
		return;
	forget(bridges);
	free(bridges);
}

/* A link and those below it, down to hardware where there is some. */
struct chain {
	char names[MAX_LINKS][IFNAMSIZ];
	size_t count;
};

static bool has_device(const char *interface)
{
	char path[512];

	(void)snprintf(path, sizeof(path), "/sys/class/net/%.200s/device", interface);
	return access(path, F_OK) == 0;
}

/* Adds what is below a link; false where that is more than any host of ours has, or cannot be told. */
static bool add_lower(struct chain *chain, const char *interface)
{
	static const char lower[] = "lower_";
	char path[512];
	bool room = true;

	(void)snprintf(path, sizeof(path), "/sys/class/net/%.200s", interface);
	DIR *const directory = opendir(path);
	if (!directory)
		return errno == ENOENT; /* the link has gone */
	for (const struct dirent *i = readdir(directory); i && room; i = readdir(directory)) {
		if (strncmp(i->d_name, lower, strlen(lower)) != 0)
			continue;
		room = chain->count < MAX_LINKS;
		if (room)
			(void)snprintf(chain->names[chain->count++], IFNAMSIZ, "%.15s",
				       i->d_name + strlen(lower));
	}
	(void)closedir(directory);
	return room;
}

/*
 * A device directory means hardware: the network reaches beyond this host. So it does where a link
 * below, as of a VLAN or a bond, has one.
 */
static bool is_physical(const char *port)
{
	struct chain chain = {.count = 1};

	(void)snprintf(chain.names[0], IFNAMSIZ, "%.15s", port);
	for (size_t i = 0; i < chain.count; i++)
		if (has_device(chain.names[i]) || !add_lower(&chain, chain.names[i]))
			return true;
	return false;
}

/* True for a bridge all of whose ports are virtual. */
static bool is_inner_bridge(const char *interface)
{
	char path[512];
	bool inner = true;

	(void)snprintf(path, sizeof(path), "/sys/class/net/%.200s/brif", interface);
	DIR *const ports = opendir(path);
	if (!ports)
		return false;
	for (const struct dirent *port = readdir(ports); port; port = readdir(ports))
		if (port->d_name[0] != '.' && is_physical(port->d_name))
			inner = false;
	(void)closedir(ports);
	return inner;
}

static unsigned prefix_bits(const struct sockaddr *mask)
{
	const unsigned char *bytes;
	size_t len;
	unsigned bits = 0;

	if (mask->sa_family == AF_INET) {
		bytes = (const unsigned char *)&((const struct sockaddr_in *)(const void *)mask)
				->sin_addr;
		len = 4;
	} else {
		bytes = (const unsigned char *)&((const struct sockaddr_in6 *)(const void *)mask)
				->sin6_addr;
		len = 16;
	}
	for (size_t i = 0; i < len; i++)
		bits += (unsigned)__builtin_popcount(bytes[i]);
	return bits;
}

static void add_network(struct bridges *bridges, const struct address *address,
			const struct sockaddr *mask)
{
	bridges->networks = xreallocarray(bridges->networks, bridges->network_count + 1,
					  sizeof(*bridges->networks));
	cidr_of(&bridges->networks[bridges->network_count++], address, prefix_bits(mask));
}

static socklen_t size_of(const struct sockaddr *sa)
{
	return sa->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

/* Where descriptors lack, what was known stays. */
static void reread(struct bridges *bridges)
{
	struct ifaddrs *all;

	if (getifaddrs(&all))
		return;
	forget(bridges);
	for (const struct ifaddrs *i = all; i && bridges->own_count < MAX_ADDRESSES;
	     i = i->ifa_next) {
		struct address address;
		if (!i->ifa_addr || !i->ifa_netmask ||
		    address_from_sockaddr(&address, i->ifa_addr, size_of(i->ifa_addr)))
			continue;
		bridges->own =
			xreallocarray(bridges->own, bridges->own_count + 1, sizeof(*bridges->own));
		bridges->own[bridges->own_count++] = address;
		if (is_inner_bridge(i->ifa_name))
			add_network(bridges, &address, i->ifa_netmask);
	}
	freeifaddrs(all);
}

static void refresh(struct bridges *bridges)
{
	const int64_t now_ms = clock_boot_ms(bridges->clock);

	if (bridges->read && now_ms - bridges->read_ms < REREAD_MS)
		return;
	bridges->read = true;
	bridges->read_ms = now_ms;
	reread(bridges);
}

bool bridges_own(struct bridges *bridges, const struct address *address)
{
	refresh(bridges);
	for (size_t i = 0; i < bridges->own_count; i++)
		if (address_same_ip(&bridges->own[i], address))
			return true;
	return false;
}

static bool is_inside(const struct bridges *bridges, const struct address *address)
{
	for (size_t i = 0; i < bridges->network_count; i++)
		if (cidr_contains(&bridges->networks[i], address))
			return true;
	return false;
}

bool bridges_contain(struct bridges *bridges, const struct address *address)
{
	return !bridges_own(bridges, address) && is_inside(bridges, address);
}

bool bridges_serve(struct bridges *bridges, const struct address *address)
{
	return bridges_own(bridges, address) && is_inside(bridges, address);
}

int bridges_address_of(const char *interface, struct address *out)
{
	struct ifaddrs *all;
	struct address address;
	bool found = false;

	if (getifaddrs(&all))
		return -1;
	for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
		if (!i->ifa_addr || strcmp(i->ifa_name, interface) != 0 ||
		    address_from_sockaddr(&address, i->ifa_addr, size_of(i->ifa_addr)))
			continue;
		if (!found || address.any.sa_family == AF_INET)
			*out = address;
		found = true;
	}
	freeifaddrs(all);
	return found ? 0 : -1;
}
