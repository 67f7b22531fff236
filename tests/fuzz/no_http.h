/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the place of the HTTP client where what is only read may call nobody. */
#pragma once

#include "broker/net/http_client.h"

#include <stdlib.h>

struct http_call *http_client_start(struct http_client *client,
				    const struct http_client_request *request,
				    http_client_done *done, void *ctx)
{
	(void)client;
	(void)request;
	(void)done;
	(void)ctx;
	abort();
}

void http_call_cancel(struct http_call *call)
{
	if (call)
		abort();
}
