/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A subject token as text, or in a field of JSON: whatever was read, a token without blanks around it or a
 * failure without a word of what was read. The first line of an input is the field's name; empty, the
 * rest is text.
 */
#include "broker/base/alloc.h"
#include "broker/base/compiler.h"
#include "broker/base/secret.h"
#include "broker/credential/subject_token.h"
#include "broker/google/jwt_times.h"
#include "tests/fuzz/no_http.h"

#include <string.h>

#define MAX_TOKEN_BYTES ((size_t)64 << 10)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void on_done(void *ctx, struct secret *token, const struct failure *failure)
{
	++*(unsigned *)ctx;
	check(!token != !failure);
	if (failure) {
		check(failure->step == FAILURE_STEP_SUBJECT &&
		      failure->class == FAILURE_TRANSIENT &&
		      !strcmp(failure->reason, "no_subject_token"));
		return;
	}
	const char *const bytes = secret_bytes(token);
	const size_t len = secret_len(token);
	check(len > 0 && len <= MAX_TOKEN_BYTES && strlen(bytes) == len);
	const struct jwt_times times = jwt_read_times(bytes);
	check(times.issued_s >= 0 && times.expires_s >= 0);
	check(!strchr(" \t\r\n", bytes[0]) && !strchr(" \t\r\n", bytes[len - 1]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *const newline = size ? memchr(data, '\n', size) : NULL;
	unsigned results = 0;

	if (!newline)
		return 0;
	AUTO_FREE char *field = xstrndup((const char *)data, (size_t)(newline - data));
	struct subject_source source = {
		.format.field = *field ? field : NULL,
		.done = on_done,
		.ctx = &results,
	};
	subject_publish(&source, (const char *)newline + 1, size - (size_t)(newline + 1 - data));
	check(results == 1);
	return 0;
}
