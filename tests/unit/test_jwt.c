/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/google/jwt.h"

#include "broker/base/err.h"
#include "broker/base/secret.h"
#include "tests/unit/rsa_fixture.h"

static EVP_PKEY *rsa;

static int make_key(void **state)
{
	(void)state;
	rsa = EVP_RSA_gen(2048);
	return rsa ? 0 : -1;
}

static int free_key(void **state)
{
	(void)state;
	EVP_PKEY_free(rsa);
	return 0;
}

static void check_signing_with(const char *pem)
{
	struct jwt_key *key = NULL;
	struct secret *token = NULL;
	struct jwt_parts parts;
	struct err err;

	assert_int_equal(jwt_key_read(pem, &key, &err), 0);
	json_auto_t *claims = json_pack("{s:s, s:I}", "iss", "a@b.example", "iat", (json_int_t)17);
	assert_int_equal(jwt_sign(key, "key-1", claims, &token, &err), 0);
	jwt_verify(secret_bytes(token), rsa, &parts);
	assert_string_equal(parts.header, "{\"alg\":\"RS256\",\"typ\":\"JWT\",\"kid\":\"key-1\"}");
	assert_true(json_equal(parts.claims, claims));
	jwt_parts_deinit(&parts);
	secret_unref(token);
	jwt_key_free(key);
}

static void a_pkcs8_key_signs_what_openssl_verifies(void **state)
{
	AUTO_FREE char *pem = pem_pkcs8(rsa);

	(void)state;
	assert_non_null(strstr(pem, "-----BEGIN PRIVATE KEY-----"));
	check_signing_with(pem);
}

static void a_pkcs1_key_signs_what_openssl_verifies(void **state)
{
	BIO *const bio = BIO_new(BIO_s_mem());

	(void)state;
	assert_int_equal(PEM_write_bio_PrivateKey_traditional(bio, rsa, NULL, NULL, 0, NULL, NULL),
			 1);
	AUTO_FREE char *pem = pem_take(bio);
	assert_non_null(strstr(pem, "-----BEGIN RSA PRIVATE KEY-----"));
	check_signing_with(pem);
}

static void without_a_key_id_the_header_has_none(void **state)
{
	AUTO_FREE char *pem = pem_pkcs8(rsa);
	struct jwt_key *key = NULL;
	struct secret *token = NULL;
	struct jwt_parts parts;
	struct err err;

	(void)state;
	assert_int_equal(jwt_key_read(pem, &key, &err), 0);
	json_auto_t *claims = json_object();
	assert_int_equal(jwt_sign(key, NULL, claims, &token, &err), 0);
	jwt_verify(secret_bytes(token), rsa, &parts);
	assert_string_equal(parts.header, "{\"alg\":\"RS256\",\"typ\":\"JWT\"}");
	jwt_parts_deinit(&parts);
	secret_unref(token);
	jwt_key_free(key);
}

static void claims_that_are_too_long_are_refused(void **state)
{
	static char text[10000];
	AUTO_FREE char *pem = pem_pkcs8(rsa);
	struct jwt_key *key = NULL;
	struct secret *token = NULL;
	struct err err;

	(void)state;
	memset(text, 'a', sizeof(text) - 1);
	assert_int_equal(jwt_key_read(pem, &key, &err), 0);
	json_auto_t *claims = json_pack("{s:s}", "sub", text);
	assert_int_equal(jwt_sign(key, NULL, claims, &token, &err), -1);
	assert_null(token);
	assert_int_equal(err.code, ERR_INVALID);
	jwt_key_free(key);
}

static void check_refused(const char *pem, const char *why)
{
	struct jwt_key *key = NULL;
	struct err err = {0};

	assert_int_equal(jwt_key_read(pem, &key, &err), -1);
	assert_null(key);
	assert_int_equal(err.code, ERR_INVALID);
	assert_string_equal(err.text, why);
}

static void what_is_no_private_key_is_refused_by_what_it_is(void **state)
{
	static const char no_pem[] =
		"is not a PEM private key (\"-----BEGIN PRIVATE KEY-----\" and what follows)";
	static const char damaged[] = "is a PEM private key that is cut off or damaged";

	(void)state;
	check_refused("", no_pem);
	check_refused("garbage", no_pem);
	check_refused("\xff\xfe", no_pem);
	check_refused("{\"kty\":\"RSA\"}", no_pem);
	check_refused("-----BEGIN PRIVATE KEY-----", damaged);
	check_refused("-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n", damaged);
	check_refused("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", damaged);
	check_refused("-----BEGIN PRIVATE KEY-----\n!!!!\n-----END PRIVATE KEY-----\n", damaged);
}

static void a_key_that_is_cut_off_at_any_line_is_refused(void **state)
{
	AUTO_FREE char *pem = pem_pkcs8(rsa);

	(void)state;
	for (char *end = strrchr(pem, '-') - 30; end > pem + 30; end -= 64) {
		*end = '\0';
		check_refused(pem, "is a PEM private key that is cut off or damaged");
	}
}

/* Such a key decodes well; only its signatures are worth nothing. */
static void a_key_with_another_modulus_is_refused(void **state)
{
	AUTO_FREE char *pem = pem_pkcs8(rsa);

	(void)state;
	/* The fourth line: the modulus fills the first six. */
	char *const digit = pem + strlen("-----BEGIN PRIVATE KEY-----\n") + (size_t)3 * 65 + 20;
	*digit = (char)(*digit == 'A' ? 'B' : 'A');
	check_refused(pem, "is an RSA private key that is damaged");
}

static void a_public_key_is_refused(void **state)
{
	BIO *const bio = BIO_new(BIO_s_mem());

	(void)state;
	assert_int_equal(PEM_write_bio_PUBKEY(bio, rsa), 1);
	AUTO_FREE char *pem = pem_take(bio);
	check_refused(pem, "is a public key or a certificate, not a private key");
}

static void an_encrypted_key_is_refused_without_asking_for_the_passphrase(void **state)
{
	static char passphrase[] = "passphrase";
	BIO *const pkcs8 = BIO_new(BIO_s_mem());
	BIO *const pkcs1 = BIO_new(BIO_s_mem());

	(void)state;
	assert_int_equal(PEM_write_bio_PKCS8PrivateKey(pkcs8, rsa, EVP_aes_256_cbc(), passphrase,
						       (int)strlen(passphrase), NULL, NULL),
			 1);
	AUTO_FREE char *pem8 = pem_take(pkcs8);
	check_refused(pem8, "is encrypted with a passphrase");
	assert_int_equal(PEM_write_bio_PrivateKey_traditional(pkcs1, rsa, EVP_aes_256_cbc(),
							      (unsigned char *)passphrase,
							      (int)strlen(passphrase), NULL, NULL),
			 1);
	AUTO_FREE char *pem1 = pem_take(pkcs1);
	check_refused(pem1, "is encrypted with a passphrase");
}

static void keys_that_rs256_does_not_know_are_refused(void **state)
{
	EVP_PKEY *const ec = EVP_EC_gen("P-256");
	AUTO_FREE char *pem_ec = pem_pkcs8(ec);
	EVP_PKEY *const ed = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	AUTO_FREE char *pem_ed = pem_pkcs8(ed);

	(void)state;
	check_refused(pem_ec, "is not an RSA key");
	check_refused(pem_ed, "is not an RSA key");
	EVP_PKEY_free(ec);
	EVP_PKEY_free(ed);
}

static void a_key_of_1024_bits_is_refused(void **state)
{
	EVP_PKEY *const small = EVP_RSA_gen(1024);
	AUTO_FREE char *pem = pem_pkcs8(small);

	(void)state;
	check_refused(pem, "is an RSA key of less than 2048 bits");
	EVP_PKEY_free(small);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pkcs8_key_signs_what_openssl_verifies),
		cmocka_unit_test(a_pkcs1_key_signs_what_openssl_verifies),
		cmocka_unit_test(without_a_key_id_the_header_has_none),
		cmocka_unit_test(claims_that_are_too_long_are_refused),
		cmocka_unit_test(what_is_no_private_key_is_refused_by_what_it_is),
		cmocka_unit_test(a_key_that_is_cut_off_at_any_line_is_refused),
		cmocka_unit_test(a_key_with_another_modulus_is_refused),
		cmocka_unit_test(a_public_key_is_refused),
		cmocka_unit_test(an_encrypted_key_is_refused_without_asking_for_the_passphrase),
		cmocka_unit_test(keys_that_rs256_does_not_know_are_refused),
		cmocka_unit_test(a_key_of_1024_bits_is_refused),
	};

	return cmocka_run_group_tests(tests, make_key, free_key);
}
