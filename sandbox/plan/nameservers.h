/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nameservers of this host, which engines hand on to their containers.
 */
#pragma once

#include <stddef.h>

struct strv;

/* Adds those of the host: /etc/resolv.conf, and systemd-resolved's own list behind its stub. */
void nameservers_of_host(struct strv *out);

/* Adds those that a resolv.conf names, as they are written, without a zone. */
void nameservers_parse(const char *text, size_t len, struct strv *out);
