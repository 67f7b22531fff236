/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of the control API that are about sessions. A session belongs to the uid that opened it; to
 * others than that, root and the broker's own it does not exist.
 */
#pragma once

struct control;
struct http_request;

/* POST /v1/sessions; may be answered later, by a preflight or with a lease. */
void control_post_session(struct control *control, struct http_request *request, const char *id);
void control_get_sessions(struct control *control, struct http_request *request, const char *id);
void control_get_session(struct control *control, struct http_request *request, const char *id);
void control_patch_session(struct control *control, struct http_request *request, const char *id);
void control_delete_session(struct control *control, struct http_request *request, const char *id);

/* The client of a waiting POST has gone, or the broker ends. */
void control_opening_gone(struct http_request *request);
void control_opening_closing(struct http_request *request);
