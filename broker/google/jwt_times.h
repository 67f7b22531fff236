/* SPDX-License-Identifier: Apache-2.0 */
/* When somebody else's JWT was issued and when it ends, as it says itself (RFC 7519): for people only. */
#pragma once

#include <stdint.h>

/* In seconds since 1970; 0 where it does not say. */
struct jwt_times {
	int64_t issued_s;
	int64_t expires_s;
};

/* Nothing is verified; of what is no JWT both are 0. */
struct jwt_times jwt_read_times(const char *token);
