/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/net/http_response.h"

#include "broker/base/alloc.h"
#include "broker/net/http_connection.h"

#include <string.h>

struct http_response {
	struct MHD_Response *mhd;
	unsigned status;
};

/* MHD_ContentReaderFreeCallback of a secret body: its length stands in front of it. */
static void free_secret_body(void *cls)
{
	size_t *const block = cls;

	explicit_bzero(block, sizeof(*block) + *block);
	free(block);
}

static struct MHD_Response *secret_response(const char *body, size_t len)
{
	size_t *const block = xmalloc(sizeof(*block) + len);

	*block = len;
	memcpy(block + 1, body, len);
	return MHD_create_response_from_buffer_with_free_callback_cls(len, block + 1,
								      free_secret_body, block);
}

struct http_response *http_response_wrap(const struct http_server *server, unsigned status,
					 const char *content_type, struct MHD_Response *takes_mhd)
{
	struct http_response *const response = xcalloc(1, sizeof(*response));

	if (!takes_mhd)
		abort();
	response->status = status;
	response->mhd = takes_mhd;
	http_response_add_header(response, "Content-Type", content_type);
	for (const char *const *h = server->headers; h[0]; h += 2)
		http_response_add_header(response, h[0], h[1]);
	return response;
}

struct http_response *http_response_new(const struct http_server *server, unsigned status,
					const char *content_type, const char *body, size_t len,
					enum http_body how)
{
	const enum MHD_ResponseMemoryMode mode = how == HTTP_BODY_COPY ? MHD_RESPMEM_MUST_COPY :
									 MHD_RESPMEM_PERSISTENT;

	if (how == HTTP_BODY_SECRET)
		return http_response_wrap(server, status, content_type, secret_response(body, len));
	return http_response_wrap(server, status, content_type,
				  MHD_create_response_from_buffer(len, (void *)body, mode));
}

void http_response_add_header(struct http_response *response, const char *name, const char *value)
{
	if (MHD_add_response_header(response->mhd, name, value) != MHD_YES)
		abort();
}

void http_response_set_close(struct http_response *response)
{
	http_response_add_header(response, "Connection", "close");
}

void http_response_free(struct http_response *response)
{
	if (!response)
		return;
	MHD_destroy_response(response->mhd);
	free(response);
}

unsigned http_response_status(const struct http_response *response)
{
	return response->status;
}

struct MHD_Response *http_response_mhd(const struct http_response *response)
{
	return response->mhd;
}
