/* SPDX-License-Identifier: Apache-2.0 */
/* What gcloud prints: whatever it is, a token with an end, or a sentence about what is wrong. */
#include "broker/base/alloc.h"
#include "broker/base/compiler.h"
#include "broker/base/parse.h"
#include "broker/base/secret.h"
#include "broker/credential/gcloud_answer.h"
#include "broker/google/access_token.h"
#include "tests/fuzz/no_http.h"

#include <string.h>

/* The years 0 and 9999: all that RFC 3339 can say lies between. */
#define FIRST_MS (-62167219200000 - 86400000)
#define LAST_MS (253402300799999 + 86400000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gcloud_answer answer = {0};
	const char *const wrong = gcloud_answer_read((const char *)data, size, &answer);

	if (wrong) {
		check(!answer.token && !answer.account && strstr(wrong, "gcloud config") != NULL);
		return 0;
	}
	AUTO_SECRET struct secret *token = answer.token;
	AUTO_FREE char *account = answer.account;
	check(secret_len(token) > 0 && secret_len(token) <= ACCESS_TOKEN_MAX_BYTES);
	check(!strpbrk(secret_bytes(token), " \t\r\n\"\\"));
	check(answer.expires_wall_ms >= FIRST_MS && answer.expires_wall_ms <= LAST_MS);
	check(!account || text_is_email(account));
	return 0;
}
