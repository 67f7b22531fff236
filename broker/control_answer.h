/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers of the control API: JSON, text, and errors of a closed set of codes. Every refusal is audited.
 */
#pragma once

#include "broker/base/compiler.h"

#include <jansson.h>

struct broker;
struct http_request;

void control_answer_text(const struct broker *broker, struct http_request *request, unsigned status,
			 const char *content_type, const char *text);
void control_answer_json(const struct broker *broker, struct http_request *request, unsigned status,
			 json_t *takes_body);
/* An answer without a body. */
void control_answer_empty(const struct broker *broker, struct http_request *request,
			  unsigned status);

/* The error of that code, with the status that goes with it. */
void control_refuse(const struct broker *broker, struct http_request *request, const char *code,
		    const char *message);
/* The same under another status, where HTTP has a better one than the code's. */
void control_refuse_as(const struct broker *broker, struct http_request *request, unsigned status,
		       const char *code, const char *message);

/* {"error":{"code","message"}}; the caller's reference. */
NODISCARD json_t *control_error_json(const char *code, const char *message);
