/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys made on the spot, so that no private key lies in the repository, and a JWT taken apart by
 * OpenSSL and jansson rather than by the code under test. For tests that link with OpenSSL.
 */
#pragma once

#include "broker/base/alloc.h"

#include <jansson.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

/* The PEM text in a BIO; the caller's. */
static inline char *pem_take(BIO *bio)
{
	char *data;
	const long len = BIO_get_mem_data(bio, &data);

	char *const text = xstrndup(data, (size_t)len);
	BIO_free(bio);
	return text;
}

/* PKCS#8, as Google's key files have it. */
static inline char *pem_pkcs8(EVP_PKEY *pkey)
{
	BIO *const bio = BIO_new(BIO_s_mem());

	assert_int_equal(PEM_write_bio_PKCS8PrivateKey(bio, pkey, NULL, NULL, 0, NULL, NULL), 1);
	return pem_take(bio);
}

static inline size_t base64url_decode(const char *text, size_t len, unsigned char *out)
{
	AUTO_FREE char *padded = xmalloc(len + 5);

	for (size_t i = 0; i < len; i++) {
		assert_null(strchr("+/=", text[i]));
		padded[i] = text[i];
		if (text[i] == '-')
			padded[i] = '+';
		if (text[i] == '_')
			padded[i] = '/';
	}
	const size_t padding = (4 - len % 4) % 4;
	memset(padded + len, '=', padding);
	const int n = EVP_DecodeBlock(out, (unsigned char *)padded, (int)(len + padding));
	assert_true(n >= 0);
	return (size_t)n - padding;
}

struct jwt_parts {
	char *header; /* JSON text; the caller's */
	json_t *claims;
};

static inline void jwt_parts_deinit(struct jwt_parts *parts)
{
	free(parts->header);
	json_decref(parts->claims);
}

/* Takes a compact RS256 JWT apart, after its signature was verified with the key. */
static inline void jwt_verify(const char *token, EVP_PKEY *pkey, struct jwt_parts *parts)
{
	const char *const first = strchr(token, '.');
	assert_non_null(first);
	const char *const second = strchr(first + 1, '.');
	assert_non_null(second);
	assert_null(strchr(second + 1, '.'));

	AUTO_FREE unsigned char *bytes = xmalloc(strlen(token) + 4);
	const size_t signature_len = base64url_decode(second + 1, strlen(second + 1), bytes);
	EVP_MD_CTX *const ctx = EVP_MD_CTX_new();
	assert_int_equal(EVP_DigestVerifyInit(ctx, NULL, EVP_sha256(), NULL, pkey), 1);
	assert_int_equal(EVP_DigestVerify(ctx, bytes, signature_len, (const unsigned char *)token,
					  (size_t)(second - token)),
			 1);
	EVP_MD_CTX_free(ctx);

	size_t len = base64url_decode(token, (size_t)(first - token), bytes);
	parts->header = xstrndup((char *)bytes, len);
	len = base64url_decode(first + 1, (size_t)(second - first - 1), bytes);
	parts->claims = json_loadb((char *)bytes, len, 0, NULL);
	assert_non_null(parts->claims);
}
