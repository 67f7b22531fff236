/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service account of the machine itself, from the metadata server that the configuration names: the
 * one place where plain http leaves loopback, since that server speaks nothing else.
 */
#include "broker/credential/credential_impl.h"

#include "broker/base/alloc.h"
#include "broker/base/err.h"
#include "broker/base/json.h"
#include "broker/base/parse.h"
#include "broker/base/secret.h"
#include "broker/base/timer.h"
#include "broker/google/access_token.h"
#include "broker/net/address.h"
#include "broker/net/http_client.h"
#include "broker/net/origin.h"

#include <string.h>
#include <strings.h>

/* The server is on this machine's hypervisor. */
#define TIMEOUT_MS 5000
#define PORT 80
#define FLAVOR "Metadata-Flavor"
#define ACCOUNT_PATH "instance/service-accounts/default/"

/* One refresh asks for these in turn; the first two once only. */
enum question {
	ASK_UNIVERSE,
	ASK_EMAIL,
	ASK_TOKEN,
};

struct metadata {
	struct credential base;
	char *host; /* HOST or HOST:PORT */
	char *universe;
	bool (*is_ours)(const void *ctx, const struct address *address);
	bool (*is_our_name)(const void *ctx, const char *name, uint16_t port);
	const void *is_ours_ctx;
	enum question next;
	struct http_call *call; /* under way, or NULL */
	struct timer timer;	/* a refusal on its way */
};

static void publish_failure(struct metadata *self, const struct failure *failure)
{
	const struct credential_refreshed result = {.failure = failure};

	credential_publish(&self->base, &result);
}

static void fail(struct metadata *self, enum failure_class class, const char *reason,
		 const char *detail)
{
	struct failure failure;

	failure_set(&failure, FAILURE_STEP_METADATA, class, reason, "%s", detail);
	publish_failure(self, &failure);
}

static void ask(struct metadata *self);

static void ask_next(struct metadata *self)
{
	self->next++;
	ask(self);
}

/* The body without the newline that may end it is this text. */
static bool body_is(const struct http_answer *answer, const char *text)
{
	size_t len = answer->body_len;

	while (len && strchr("\r\n", answer->body[len - 1]))
		len--;
	return len == strlen(text) && !strncasecmp(answer->body, text, len);
}

/* A server that does not know universes is of Google's own. */
static void read_universe(struct metadata *self, const struct http_answer *answer)
{
	const bool unknown = answer->status == 404 && !strcasecmp(self->universe, "googleapis.com");

	if (unknown || (answer->status == 200 && body_is(answer, self->universe)))
		ask_next(self);
	else
		fail(self, FAILURE_PERMANENT, "other_universe",
		     "the metadata server is of another universe than universe_domain under "
		     "[endpoints]: set it, or use another source");
}

/* For the status page and the log; a token is had without it. */
static void read_email(struct metadata *self, const struct http_answer *answer)
{
	AUTO_FREE char *email = xstrndup(answer->body, strcspn(answer->body, "\r\n"));

	if (answer->status == 200 && text_is_email(email)) {
		free(self->base.principal);
		self->base.principal = TAKE(email);
	}
	ask_next(self);
}

static void read_token(struct metadata *self, const struct http_answer *answer)
{
	json_auto_t *body = json_read_object(answer->body, answer->body_len);
	AUTO_SECRET struct secret *token =
		access_token_from_json(json_object_get(body, "access_token"));
	const struct credential_refreshed refreshed = {
		.token = token,
		.life_s = access_token_life_s(json_object_get(body, "expires_in")),
	};

	if (token && refreshed.life_s > 0)
		credential_publish(&self->base, &refreshed);
	else
		fail(self, FAILURE_TRANSIENT, "bad_answer",
		     "the metadata server answered 200 without a usable access_token and an "
		     "expires_in above 0");
}

static bool is_tolerated(enum question question, long status)
{
	return status == 200 || (status == 404 && question != ASK_TOKEN);
}

static void answered(void *ctx, const struct http_answer *answer)
{
	struct metadata *const self = ctx;
	struct failure failure;

	self->call = NULL;
	if (answer->failure != HTTP_FAILURE_NONE || !is_tolerated(self->next, answer->status)) {
		failure_from_answer(&failure, FAILURE_STEP_METADATA, answer);
		publish_failure(self, &failure);
		return;
	}
	/* By this header a metadata server is told from whatever else answers there. */
	if (!answer->field || strcmp(answer->field, "Google") != 0) {
		fail(self, FAILURE_PERMANENT, "no_metadata_server",
		     "what answers at metadata_host is no metadata server (no " FLAVOR
		     ": Google): check metadata_host under [source]");
		return;
	}
	switch (self->next) {
	case ASK_UNIVERSE:
		read_universe(self, answer);
		return;
	case ASK_EMAIL:
		read_email(self, answer);
		return;
	case ASK_TOKEN:
		read_token(self, answer);
		return;
	}
}

static void ask(struct metadata *self)
{
	static const char *const paths[] = {
		[ASK_UNIVERSE] = "universe/universe-domain",
		[ASK_EMAIL] = ACCOUNT_PATH "email",
		[ASK_TOKEN] = ACCOUNT_PATH "token",
	};
	static const struct http_field flavor = {FLAVOR, "Google"};
	AUTO_FREE char *url =
		xasprintf("http://%s/computeMetadata/v1/%s", self->host, paths[self->next]);
	const struct http_client_request request = {
		.method = "GET",
		.url = url,
		.fields = &flavor,
		.field_count = 1,
		.answer_field = FLAVOR,
		.timeout_ms = TIMEOUT_MS,
	};

	self->call = http_client_start(self->base.client, &request, answered, self);
}

/*
 * Asking ourselves, we would wait for our own answer. No resolver is asked where a name leads: it goes into
 * Host, and our endpoints accept a few. By such a name, and on the port of one of them, a server that is
 * another's is refused as well; it has an address.
 */
static bool is_ours(const struct metadata *self)
{
	struct address addresses[2];
	const size_t count = host_port_addresses(self->host, PORT, addresses);

	for (size_t i = 0; self->is_ours && i < count; i++)
		if (self->is_ours(self->is_ours_ctx, &addresses[i]))
			return true;
	/* Where localhost is, is known. */
	return count < 2 && self->is_our_name &&
	       self->is_our_name(self->is_ours_ctx, self->host, host_port_port(self->host, PORT));
}

static void refuse_ours(struct timer *timer)
{
	fail(CONTAINER_OF(timer, struct metadata, timer), FAILURE_PERMANENT, "own_endpoint",
	     "metadata_host under [source] is an endpoint of this broker: name the machine's own "
	     "metadata server, by its address");
}

static void metadata_refresh(struct credential *credential)
{
	struct metadata *const self = CONTAINER_OF(credential, struct metadata, base);

	/* At each time: endpoints come and go. */
	if (is_ours(self))
		timer_set_after(credential->timers, &self->timer, 0, refuse_ours);
	else
		ask(self);
}

static void metadata_free(struct credential *credential)
{
	struct metadata *const self = CONTAINER_OF(credential, struct metadata, base);

	timer_stop(credential->timers, &self->timer);
	http_call_cancel(self->call);
	free(self->host);
	free(self->universe);
	free(self);
}

static const struct credential_ops metadata_ops = {
	.type = "metadata",
	.refresh = metadata_refresh,
	.free = metadata_free,
};

int metadata_open(const struct credential_options *options, struct credential **out,
		  struct err *err)
{
	struct metadata *const self = xcalloc(1, sizeof(*self));

	credential_init(&self->base, &metadata_ops, options);
	self->base.principal = xstrdup("");
	self->base.repair = xstrdup("give the VM's service account the scope, with: gcloud compute "
				    "instances set-service-account VM --scopes=cloud-platform");
	self->base.content = secret_new(options->metadata_host, strlen(options->metadata_host));
	self->host = xstrdup(options->metadata_host);
	self->universe = xstrdup(options->universe_domain);
	self->is_ours = options->is_ours;
	self->is_our_name = options->is_our_name;
	self->is_ours_ctx = options->is_ours_ctx;
	*out = &self->base;
	if (!is_ours(self))
		return 0;
	credential_free(TAKE(*out));
	return err_set(err, ERR_INVALID,
		       "source metadata: metadata_host %s is an endpoint of this broker: name the "
		       "machine's own metadata server under [source], by its address",
		       options->metadata_host);
}
