/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PEM (RFC 7468), strictly: blocks of one kind and nothing else, so that no other file crosses under
 * the name of a certificate.
 */
#pragma once

#include "broker/base/compiler.h"

#include <stddef.h>

enum pem_kind {
	PEM_CERTIFICATES, /* one or more */
	PEM_PRIVATE_KEY,  /* one, not encrypted */
};

/* NULL where the text is that and nothing else, else why not, as "holds …": a constant. */
NODISCARD const char *pem_check(enum pem_kind kind, const char *text, size_t len);
