/* SPDX-License-Identifier: Apache-2.0 */
/* What a program for subject tokens prints: whatever it is, one of four verdicts, and a token with one. */
#include "broker/base/compiler.h"
#include "broker/base/secret.h"
#include "broker/credential/executable_response.h"
#include "tests/fuzz/no_http.h"

#include <string.h>

#define NOW_S 1800000000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct executable_response now;
	struct executable_response later;

	executable_response_read((const char *)data, size, NOW_S, &now);
	executable_response_read((const char *)data, size, INT64_MAX, &later);
	AUTO_SECRET struct secret *token = now.token;
	AUTO_SECRET struct secret *token_later = later.token;
	check((now.verdict == EXECUTABLE_GOOD) == (token != NULL));
	check(!token ||
	      (secret_len(token) > 0 && strlen(secret_bytes(token)) == secret_len(token)));
	check(now.verdict == EXECUTABLE_REFUSED || !now.code[0]);
	/* Time changes one thing: what has an end comes to it. */
	if (now.verdict == EXECUTABLE_GOOD && now.has_expiry)
		check(later.verdict == EXECUTABLE_EXPIRED && !token_later);
	else
		check(later.verdict == now.verdict);
	return 0;
}
