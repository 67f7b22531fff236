/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/google/jwt.h"

#include "broker/base/alloc.h"
#include "broker/base/base64url.h"
#include "broker/base/buf.h"
#include "broker/base/err.h"
#include "broker/base/secret.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <string.h>

#define MIN_KEY_BITS 2048
/* Of the header and of the claims, as JSON. */
#define MAX_PART_BYTES 8192
/* Two parts and a signature of the largest key that OpenSSL reads, in base64, and two dots. */
#define MAX_TOKEN_BYTES 32768

struct jwt_key {
	EVP_PKEY *pkey;
};

static void pkey_free_p(EVP_PKEY **pkey)
{
	EVP_PKEY_free(*pkey);
}

static void bio_free_p(BIO **bio)
{
	BIO_free(*bio);
}

static void md_ctx_free_p(EVP_MD_CTX **ctx)
{
	EVP_MD_CTX_free(*ctx);
}

/* OpenSSL asks here for a passphrase; without it, it would ask on the terminal. */
static int refuse_passphrase(char *buf, int size, int rwflag, void *asked)
{
	(void)buf;
	(void)size;
	(void)rwflag;
	*(bool *)asked = true;
	return -1;
}

static int sign(EVP_PKEY *pkey, const struct buf *input, unsigned char *out, size_t *len)
{
	CLEANUP(md_ctx_free_p) EVP_MD_CTX *ctx = EVP_MD_CTX_new();

	if (!ctx || EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, pkey) != 1 ||
	    EVP_DigestSign(ctx, out, len, (const unsigned char *)input->data, input->len) != 1)
		return -1;
	return 0;
}

/* A damaged key often decodes well and then makes signatures that nobody accepts. */
static bool signs_verifiably(EVP_PKEY *pkey)
{
	static const unsigned char sample[] = "sample";
	size_t len = (size_t)EVP_PKEY_get_size(pkey);
	AUTO_FREE unsigned char *signature = xmalloc(len);
	CLEANUP(md_ctx_free_p) EVP_MD_CTX *signer = EVP_MD_CTX_new();
	CLEANUP(md_ctx_free_p) EVP_MD_CTX *verifier = EVP_MD_CTX_new();

	return signer && verifier &&
	       EVP_DigestSignInit(signer, NULL, EVP_sha256(), NULL, pkey) == 1 &&
	       EVP_DigestSign(signer, signature, &len, sample, sizeof(sample)) == 1 &&
	       EVP_DigestVerifyInit(verifier, NULL, EVP_sha256(), NULL, pkey) == 1 &&
	       EVP_DigestVerify(verifier, signature, len, sample, sizeof(sample)) == 1;
}

static const char *why_not_read(const char *pem, bool passphrase_asked)
{
	if (passphrase_asked)
		return "is encrypted with a passphrase";
	if (strstr(pem, "PUBLIC KEY-----") || strstr(pem, "BEGIN CERTIFICATE-----"))
		return "is a public key or a certificate, not a private key";
	if (!strstr(pem, "PRIVATE KEY-----"))
		return "is not a PEM private key (\"-----BEGIN PRIVATE KEY-----\" and what follows)";
	return "is a PEM private key that is cut off or damaged";
}

static const char *why_not_usable(EVP_PKEY *pkey)
{
	if (!EVP_PKEY_is_a(pkey, "RSA"))
		return "is not an RSA key";
	if (EVP_PKEY_get_bits(pkey) < MIN_KEY_BITS)
		return "is an RSA key of less than 2048 bits";
	if (!signs_verifiably(pkey))
		return "is an RSA private key that is damaged";
	return NULL;
}

int jwt_key_read(const char *pem, struct jwt_key **out, struct err *err)
{
	bool passphrase_asked = false;
	CLEANUP(bio_free_p) BIO *bio = BIO_new_mem_buf(pem, -1);

	if (!bio)
		abort();
	CLEANUP(pkey_free_p)
	EVP_PKEY *pkey = PEM_read_bio_PrivateKey(bio, NULL, refuse_passphrase, &passphrase_asked);
	const char *const why = pkey ? why_not_usable(pkey) : why_not_read(pem, passphrase_asked);
	/* What OpenSSL notes of a failure would be taken for a later call's, also by libcurl. */
	ERR_clear_error();
	if (why)
		return err_set(err, ERR_INVALID, "%s", why);
	struct jwt_key *const key = xcalloc(1, sizeof(*key));
	key->pkey = TAKE(pkey);
	*out = key;
	return 0;
}

void jwt_key_free(struct jwt_key *key)
{
	if (!key)
		return;
	EVP_PKEY_free(key->pkey);
	free(key);
}

static int add_part(struct buf *out, const json_t *part, struct err *err)
{
	AUTO_FREE char *text = json_dumps(part, JSON_COMPACT);

	if (!text || strlen(text) > MAX_PART_BYTES)
		return err_set(err, ERR_INVALID,
			       "the assertion cannot be put into JSON or is too long");
	base64url_encode(out, text, strlen(text));
	return 0;
}

static int add_signature(struct buf *out, const struct jwt_key *key, struct err *err)
{
	size_t len = (size_t)EVP_PKEY_get_size(key->pkey);
	AUTO_FREE unsigned char *signature = xmalloc(len);

	if (sign(key->pkey, out, signature, &len)) {
		ERR_clear_error();
		return err_set(err, ERR_SYSTEM, "OpenSSL could not sign");
	}
	buf_add(out, ".");
	base64url_encode(out, signature, len);
	return 0;
}

int jwt_sign(const struct jwt_key *key, const char *key_id, const json_t *claims,
	     struct secret **out, struct err *err)
{
	AUTO_BUF struct buf token;

	buf_init_sensitive(&token, MAX_TOKEN_BYTES);
	json_auto_t *header =
		json_pack("{s:s, s:s, s:s*}", "alg", "RS256", "typ", "JWT", "kid", key_id);
	if (!header)
		return err_set(err, ERR_INVALID, "the key's id is not UTF-8");
	if (add_part(&token, header, err))
		return -1;
	buf_add(&token, ".");
	if (add_part(&token, claims, err) || add_signature(&token, key, err))
		return -1;
	*out = secret_take_buf(&token);
	return 0;
}
