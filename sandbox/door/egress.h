/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the namespace may send by IPv4, whatever route it takes. A policy rule that prohibits is no wall for a
 * socket that is bound to a device: the kernel then takes the address for one on the link, and a packet leaves
 * once somebody answers ARP. A block policy of XFRM is asked behind that; loopback is exempt from it. IPv6 needs
 * none, its rules hold for such sockets too.
 */
#pragma once

struct door_options;

/* An open netlink socket, or -1: the kernel has no XFRM. Ends the process if there are policies already. */
int egress_open(void);

/* Shuts the networks but for DNS, and closes the socket. */
void egress_shut(int fd, const struct door_options *options);
