/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the token files of a mounted directory in step with the caller's own: clients in the sandbox read
 * them again by themselves.
 */
#pragma once

#include "broker/base/compiler.h"

struct err;
struct kubeconfig;
struct loop;
struct token_follow;

/* Clients look once a minute. */
#define TOKEN_FOLLOW_EVERY_MS 2000

/*
 * Writes the tokens into the directory, mode 0644, and follows them until freed. Borrows the kubeconfig;
 * the directory is copied. -1 where a token cannot be read or written now; later on it stays as it is.
 */
NODISCARD int token_follow_new(struct loop *loop, const struct kubeconfig *kubeconfig,
			       const char *directory, struct token_follow **out, struct err *err);
/* NULL is fine. */
void token_follow_free(struct token_follow *follow);
