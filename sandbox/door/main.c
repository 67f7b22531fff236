/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postern-door: opens the metadata endpoint inside a sandbox's network namespace, hands its listening sockets
 * to the broker and then only holds the namespace. The order makes it safe: nothing is changed before the
 * ticket is accepted and everything was looked at, walls come before openings, and no privilege is left when
 * the sockets are handed over.
 */
#include "sandbox/door/attach.h"
#include "sandbox/door/confine.h"
#include "sandbox/door/endpoint.h"
#include "sandbox/door/exit_code.h"
#include "sandbox/door/network.h"
#include "sandbox/door/options.h"

int main(int argc, char **argv)
{
	struct door_options options;
	struct endpoint_sockets sockets;
	struct attach attach;

	(void)argc;
	options_parse(argv, &options);
	attach_open(&attach, &options);
	endpoint_listen(network_set_up(&options), &sockets);
	confine();
	if (!attach_offer(&attach, &sockets))
		die(EXIT_GONE, "the broker went away while the sandbox", "was set up");
	attach_hold(&attach, &sockets);
}
