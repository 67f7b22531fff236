/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vertex AI: Google's libraries take the token from an emulated GCE metadata server.
 */
#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/base/secret.h"
#include "broker/net/http_server.h"
#include "broker/recipe/recipe.h"
#include "emulator/emulator.h"

#include <stdio.h>

/* A token of a few KiB and what stands around it. */
#define MAX_BODY_BYTES ((size_t)64 << 10)
/* Distinct constant replies: the routes in two forms, and the refusals. */
#define MAX_PREPARED 64

struct prepared {
	const char *body; /* what identifies it, with the status */
	unsigned status;
	struct http_response *response;
};

struct recipe {
	struct http_server *server;
	struct emulator *emulator;
	struct prepared prepared[MAX_PREPARED];
	size_t prepared_count;
	/* The last token answer: the same until its seconds change. */
	struct secret *token;
	int64_t token_expires_in_s;
	struct http_response *token_response;
};

static struct recipe *vertex_open(struct http_server *server, const struct recipe_grant *grant)
{
	struct recipe *const recipe = xcalloc(1, sizeof(*recipe));
	const struct emulator_identity identity = {
		.email = grant->service_account,
		.project = grant->project,
		.project_number = grant->project_number,
		.universe_domain = grant->universe_domain,
		.scopes = grant->scopes,
		.advertised_host = grant->advertise_host,
	};

	recipe->server = server;
	recipe->emulator = emulator_new(&identity);
	return recipe;
}

static void vertex_close(struct recipe *recipe)
{
	if (!recipe)
		return;
	for (size_t i = 0; i < recipe->prepared_count; i++)
		http_response_free(recipe->prepared[i].response);
	http_response_free(recipe->token_response);
	secret_unref(recipe->token);
	emulator_free(recipe->emulator);
	free(recipe);
}

/* The contract, section 8; clients.md says who reads which. */
static void vertex_environment(const char *endpoint, const char *host,
			       void (*set)(void *ctx, const char *name, const char *value),
			       void *ctx)
{
	set(ctx, "GCE_METADATA_HOST", endpoint);
	set(ctx, "GCE_METADATA_IP", endpoint);
	set(ctx, "GCE_METADATA_ROOT", endpoint);
	set(ctx, "METADATA_SERVER_DETECTION", "assume-present");
	set(ctx, "GCE_METADATA_MTLS_MODE", "none");
	set(ctx, "NO_PROXY", host);
	set(ctx, "no_proxy", host);
}

static struct http_response *make(const struct recipe *recipe, const struct emulator_reply *reply,
				  enum http_body how)
{
	struct http_response *const response = http_response_new(recipe->server, reply->status,
								 reply->content_type, reply->body,
								 reply->body_len, how);

	if (reply->allow)
		http_response_add_header(response, "Allow", reply->allow);
	if (reply->close)
		http_response_set_close(response);
	return response;
}

/* Constant replies are made once. An answer may still be on its way when the emulator ends: it has a copy. */
static const struct http_response *prepare(struct recipe *recipe,
					   const struct emulator_reply *reply)
{
	for (size_t i = 0; i < recipe->prepared_count; i++) {
		const struct prepared *const p = &recipe->prepared[i];
		if (p->body == reply->body && p->status == reply->status)
			return p->response;
	}
	if (recipe->prepared_count == MAX_PREPARED)
		abort();
	struct prepared *const p = &recipe->prepared[recipe->prepared_count++];
	*p = (struct prepared){reply->body, reply->status, make(recipe, reply, HTTP_BODY_COPY)};
	return p->response;
}

_Static_assert(sizeof(struct http_header) == sizeof(struct emulator_header) &&
		       offsetof(struct http_header, value_len) ==
			       offsetof(struct emulator_header, value_len),
	       "a header of the server is a header of the emulator");

static void vertex_judge(struct recipe *recipe, const struct http_request *request,
			 bool peer_refused, struct recipe_verdict *verdict)
{
	struct emulator_reply reply;
	struct emulator_request in = {
		.method = http_request_method(request),
		.local_ip = http_request_local_ip(request),
		.malformed = http_request_malformed(request),
		.has_body = http_request_has_body(request),
		.peer_refused = peer_refused,
	};

	in.target = http_request_target(request, &in.target_len);
	in.headers =
		(const struct emulator_header *)http_request_headers(request, &in.header_count);
	const bool whole = emulator_answer(recipe->emulator, &in, &reply);
	*verdict = (struct recipe_verdict){
		.response = whole ? prepare(recipe, &reply) : NULL,
		.status = whole ? reply.status : 0,
		.route = emulator_route_name(reply.route),
		.refusal = whole && reply.refusal != EMULATOR_REFUSAL_NONE ?
				   emulator_refusal_name(reply.refusal) :
				   NULL,
		.spoken_well = !whole || reply.refusal == EMULATOR_REFUSAL_NONE ||
			       reply.refusal == EMULATOR_REFUSAL_PATH ||
			       reply.refusal == EMULATOR_REFUSAL_METHOD,
	};
}

static void respond_with_token(struct recipe *recipe, struct http_request *request,
			       const struct recipe_token *token)
{
	struct emulator_reply reply;
	AUTO_BUF struct buf body;

	buf_init_sensitive(&body, MAX_BODY_BYTES);
	if (recipe->token != token->token || recipe->token_expires_in_s != token->expires_in_s) {
		emulator_token_reply(token->token, token->expires_in_s, &body, &reply);
		http_response_free(recipe->token_response);
		recipe->token_response = make(recipe, &reply, HTTP_BODY_SECRET);
		struct secret *const held = recipe->token;
		recipe->token = secret_ref(token->token);
		recipe->token_expires_in_s = token->expires_in_s;
		secret_unref(held);
	}
	http_request_respond(request, recipe->token_response);
}

static unsigned refuse_token(const struct recipe *recipe, struct http_request *request,
			     const struct recipe_token *token)
{
	struct emulator_reply reply;
	char seconds[24];
	AUTO_BUF struct buf body;

	buf_init(&body, MAX_BODY_BYTES);
	emulator_token_refusal(token->for_now, token->description, token->ref, &body, &reply);
	struct http_response *const response = make(recipe, &reply, HTTP_BODY_COPY);
	if (token->for_now) {
		(void)snprintf(seconds, sizeof(seconds), "%lld", (long long)token->retry_after_s);
		http_response_add_header(response, "Retry-After", seconds);
	}
	http_request_respond(request, response);
	http_response_free(response);
	return reply.status;
}

static unsigned vertex_give(struct recipe *recipe, struct http_request *request,
			    const struct recipe_token *token)
{
	if (!token->token)
		return refuse_token(recipe, request, token);
	respond_with_token(recipe, request, token);
	return 200;
}

/* The metadata server's own addresses. */
static const char *const inside[] = {"169.254.169.254:80", "[fd20:ce::254]:80", NULL};

const struct recipe_backend recipe_vertex = {
	.name = "vertex",
	.headers = emulator_common_headers,
	.inside = inside,
	.open = vertex_open,
	.close = vertex_close,
	.environment = vertex_environment,
	.judge = vertex_judge,
	.give = vertex_give,
};
