/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON Web Tokens signed with RS256 (RFC 7515, RFC 7518 section 3.3). The one file of this layer that
 * knows OpenSSL.
 */
#pragma once

#include "broker/base/compiler.h"

#include <jansson.h>

struct err;
struct jwt_key;
struct secret;

/*
 * Reads a PEM private key (PKCS#8 or PKCS#1) of RSA with 2048 bits or more, without a passphrase. The
 * error says what is wrong, never anything of the key.
 */
NODISCARD int jwt_key_read(const char *pem, struct jwt_key **out, struct err *err);
/* NULL is fine. */
void jwt_key_free(struct jwt_key *key);

/*
 * Signs the claims. `key_id` becomes the header's kid where it is not NULL. The compact form is the
 * caller's.
 */
NODISCARD int jwt_sign(const struct jwt_key *key, const char *key_id, const json_t *claims,
		       struct secret **out, struct err *err);
