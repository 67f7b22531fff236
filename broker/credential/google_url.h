/* SPDX-License-Identifier: Apache-2.0 */
/*
 * URLs that a credential file names. Whoever can write such a file could send our secrets anywhere, so
 * they are checked, and never used: calls go to the configured endpoints.
 */
#pragma once

#include <stdbool.h>

struct strv;

/*
 * True for an https URL on a host of Google's for this universe (whole labels: the domain itself or a
 * host below it; accounts.google.com too for googleapis.com), and for a URL with the scheme, host and
 * port of `endpoint`.
 */
bool google_url_is_trusted(const char *url, const char *universe_domain, const char *endpoint);

/*
 * True for a URL that a subject token may be read from, which is used as it stands: https on one of the
 * hosts, any port, or http to a loopback address where `http_loopback` says so.
 */
bool subject_url_is_allowed(const char *url, const struct strv *hosts, bool http_loopback);
