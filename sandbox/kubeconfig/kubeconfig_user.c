/* SPDX-License-Identifier: Apache-2.0 */
/* The values of a user: its token, or the file that holds it. */
#include "broker/base/alloc.h"
#include "broker/base/clock.h"
#include "broker/base/err.h"
#include "broker/base/secret.h"
#include "sandbox/kubeconfig/bearer_token.h"
#include "sandbox/kubeconfig/kubeconfig.h"
#include "sandbox/kubeconfig/kubeconfig_impl.h"
#include "sandbox/kubeconfig/kubeconfig_yaml.h"

#include <inttypes.h>
#include <time.h>

/* Time to end a run before its token ends. */
#define MARGIN_S 60

#define NO_TOKEN                                                                                \
	"has no token; make one (kubectl create token NAME --duration 2h) and write it behind " \
	"\"token:\""
#define NOT_A_TOKEN "has a token that is not one line without blanks; write it so"

static void warn_of_end(const struct kubeconfig_reading *reading, const char *token)
{
	const int64_t now_s = clock_wall_ms(reading->options->clock) / 1000;
	const int64_t timeout_s = reading->options->timeout_s;
	int64_t expires_s;
	struct tm tm;
	char when[32];

	if (!bearer_token_expiry(token, &expires_s) ||
	    expires_s >= now_s + (timeout_s ? timeout_s + MARGIN_S : 0))
		return;
	const time_t expires = (time_t)expires_s;
	if (!gmtime_r(&expires, &tm) || !strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm))
		return;
	AUTO_FREE char *message = xasprintf(
		"has a token that %s at %s%s; make one that lasts: kubectl create token NAME "
		"--duration %" PRId64 "s",
		expires_s < now_s ? "ended" : "ends", when,
		expires_s < now_s ? "" : ", before a run of this timeout and a minute has ended",
		timeout_s + MARGIN_S > 600 ? timeout_s + MARGIN_S : 600);
	kubeconfig_warn(reading, KUBECONFIG_USER, message);
}

static int read_token_file(struct kubeconfig_reading *reading)
{
	const struct yaml_value *const written = reading->written.token_file;
	AUTO_FREE char *path = kubeconfig_resolve(reading, written->text);
	AUTO_SECRET struct secret *token = NULL;
	const char *why;

	if (bearer_token_read(path, &token, &why)) {
		AUTO_FREE char *message = xasprintf("has a tokenFile that %s; it must be a small, "
						    "regular file that holds the token alone",
						    why);
		return kubeconfig_refuse(reading, KUBECONFIG_USER, written->line, message);
	}
	warn_of_end(reading, secret_bytes(token));
	reading->token_file = TAKE(path);
	return 0;
}

int kubeconfig_read_user(struct kubeconfig_reading *reading)
{
	const struct kubeconfig_written *const written = &reading->written;

	if (kubeconfig_embed_client(reading))
		return -1;
	/* As in clients, the file wins. */
	if (written->token_file)
		return read_token_file(reading);
	if (!written->token)
		return reading->certificate.len ?
			       0 :
			       kubeconfig_refuse(reading, KUBECONFIG_USER,
						 reading->entries[KUBECONFIG_USER].line, NO_TOKEN);
	if (!bearer_token_is_one(written->token->text))
		return kubeconfig_refuse(reading, KUBECONFIG_USER, written->token->line,
					 NOT_A_TOKEN);
	warn_of_end(reading, written->token->text);
	reading->token = written->token->text;
	return 0;
}
