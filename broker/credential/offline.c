/* SPDX-License-Identifier: Apache-2.0 */
/* The source of demos and tests: tokens made on the spot that no API accepts. */
#include "broker/credential/credential_impl.h"

#include "broker/base/alloc.h"
#include "broker/base/random.h"
#include "broker/base/secret.h"

#include <stdio.h>
#include <string.h>

/* Anybody who sees one knows what it is. */
#define PREFIX "offline."
#define HEX_DIGITS 48

struct offline {
	struct credential base;
};

static int offline_make(struct credential *credential, const char *service, struct secret **out,
			struct failure *failure)
{
	char token[sizeof(PREFIX) + HEX_DIGITS] = PREFIX;

	(void)credential;
	(void)service;
	(void)failure;
	random_hex(token + strlen(PREFIX), HEX_DIGITS + 1);
	*out = secret_new(token, strlen(token));
	return 0;
}

static void offline_free(struct credential *credential)
{
	free(CONTAINER_OF(credential, struct offline, base));
}

static const struct credential_ops offline_ops = {
	.type = "offline",
	.offline = true,
	.make = offline_make,
	.free = offline_free,
};

int offline_open(const struct credential_options *options, struct credential **out, struct err *err)
{
	struct offline *const offline = xcalloc(1, sizeof(*offline));

	(void)err;
	credential_init(&offline->base, &offline_ops, options);
	*out = &offline->base;
	return 0;
}
