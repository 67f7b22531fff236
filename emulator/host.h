/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does a Host header name this endpoint? A page in a browser that had its name re-bound to our address
 * sends its own name, and gets nothing (99designs/aws-vault#578).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * `value` is the header's, without blanks around it; `advertised_host` may be NULL. An IP literal must
 * be the connection's own local address.
 */
bool host_names_endpoint(const char *value, size_t len, const char *advertised_host,
			 const char *local_ip);
