/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/base/secret.h"

#include "broker/base/alloc.h"
#include "broker/base/buf.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>

struct secret {
	size_t refs;
	size_t len;
	char fingerprint[SECRET_FINGERPRINT_SIZE];
	char bytes[];
};

static void compute_fingerprint(struct secret *secret)
{
	static const char digits[] = "0123456789abcdef";
	unsigned char hash[EVP_MAX_MD_SIZE];

	if (EVP_Digest(secret->bytes, secret->len, hash, NULL, EVP_sha256(), NULL) != 1)
		abort();
	for (size_t i = 0; i < (SECRET_FINGERPRINT_SIZE - 1) / 2; i++) {
		secret->fingerprint[2 * i] = digits[hash[i] >> 4];
		secret->fingerprint[2 * i + 1] = digits[hash[i] & 15];
	}
}

struct secret *secret_new(const void *bytes, size_t len)
{
	struct secret *const secret = xcalloc(1, sizeof(*secret) + len + 1);

	secret->refs = 1;
	secret->len = len;
	if (len)
		memcpy(secret->bytes, bytes, len);
	compute_fingerprint(secret);
	return secret;
}

struct secret *secret_take_buf(struct buf *buf)
{
	struct secret *const secret = secret_new(buf->data, buf->len);

	buf_deinit(buf);
	return secret;
}

struct secret *secret_ref(struct secret *secret)
{
	secret->refs++;
	return secret;
}

void secret_unref(struct secret *secret)
{
	if (!secret || --secret->refs > 0)
		return;
	OPENSSL_cleanse(secret, sizeof(*secret) + secret->len);
	free(secret);
}

const char *secret_bytes(const struct secret *secret)
{
	return secret->bytes;
}

size_t secret_len(const struct secret *secret)
{
	return secret->len;
}

bool secret_equal(const struct secret *a, const struct secret *b)
{
	return a->len == b->len && CRYPTO_memcmp(a->bytes, b->bytes, a->len) == 0;
}

const char *secret_fingerprint(const struct secret *secret)
{
	return secret->fingerprint;
}
