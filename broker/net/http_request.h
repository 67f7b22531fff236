/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the HTTP server: the callbacks that libmicrohttpd drives a request by. Private to
 * http_server.c and http_request.c.
 */
#pragma once

#include <microhttpd.h>

/* MHD_OPTION_URI_LOG_CALLBACK: the raw target, before it is decoded; makes the request. */
void *http_request_on_target(void *cls, const char *target, struct MHD_Connection *mhd);
/* MHD_AccessHandlerCallback */
enum MHD_Result http_request_on_access(void *cls, struct MHD_Connection *mhd, const char *url,
				       const char *method, const char *version,
				       const char *upload_data, size_t *upload_data_size,
				       void **con_cls);
/* MHD_OPTION_NOTIFY_COMPLETED */
void http_request_on_completed(void *cls, struct MHD_Connection *mhd, void **con_cls,
			       enum MHD_RequestTerminationCode code);
/* MHD_OPTION_UNESCAPE_CALLBACK: decodes nothing. */
size_t http_request_unescape(void *cls, struct MHD_Connection *mhd, char *text);
