/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The IAM API: may the source impersonate an account? Asked without minting anything.
 */
#pragma once

#include "broker/base/compiler.h"
#include "broker/google/failure.h"

struct http_client;
struct iam_grant_call;
struct secret;

struct iam_grant_request {
	const char *endpoint;	   /* "https://iam.googleapis.com": scheme, host and port */
	const char *account;	   /* an e-mail address */
	const char *quota_project; /* NULL: none */
	struct secret *source_token;
};

enum iam_grant {
	IAM_GRANT_YES,
	IAM_GRANT_NO,	   /* Google says so */
	IAM_GRANT_UNKNOWN, /* it could not be asked */
};

/* `failure` is not NULL with IAM_GRANT_UNKNOWN, and with a NO that is an error. */
typedef void iam_grant_done(void *ctx, enum iam_grant grant, const struct failure *failure);

/*
 * serviceAccounts.testIamPermissions for iam.serviceAccounts.getAccessToken; needs no permission of its
 * own. NULL where the account is no e-mail address.
 */
NODISCARD struct iam_grant_call *iam_test_grant(struct http_client *client,
						const struct iam_grant_request *request,
						iam_grant_done *done, void *ctx);
/* Ends it without the callback. NULL is fine. */
void iam_grant_call_cancel(struct iam_grant_call *call);
