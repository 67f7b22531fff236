/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/google/failure.h"

#include "broker/base/json.h"
#include "broker/base/parse.h"
#include "broker/net/http_client.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A Retry-After counts up to this (contract, section 5). */
#define MAX_RETRY_AFTER_S 60

#define GET_ACCESS_TOKEN "iam.serviceAccounts.getAccessToken"
#define ADD_BINDING \
	"gcloud iam service-accounts add-iam-policy-binding {account} --member={member} --role="
#define TOKEN_CREATOR                                                                                 \
	"{caller} needs roles/iam.serviceAccountTokenCreator on {account} itself, with: " ADD_BINDING \
	"roles/iam.serviceAccountTokenCreator; each delegate needs it on the next one"

enum verdict {
	AGAIN,		 /* may go away by itself */
	AGAIN_NEW_TOKEN, /* the same, with another token of the source */
	DENIED,
	NO_ACCOUNT,
	LOGIN_GONE,
};

static const struct {
	enum failure_class class;
	enum failure_public public;
	bool source_token_refused;
} verdicts[] = {
	[AGAIN] = {FAILURE_TRANSIENT, FAILURE_TEMPORARY, false},
	[AGAIN_NEW_TOKEN] = {FAILURE_TRANSIENT, FAILURE_TEMPORARY, true},
	[DENIED] = {FAILURE_PERMANENT, FAILURE_NOT_ALLOWED, false},
	[NO_ACCOUNT] = {FAILURE_PERMANENT, FAILURE_NO_ACCOUNT, false},
	[LOGIN_GONE] = {FAILURE_PERMANENT, FAILURE_LOGIN_EXPIRED, false},
};

/*
 * What follows from an answer. The first rule that fits counts; the last one of a step always fits. What
 * stands in braces is of the scene (see struct failure_scene) and of the answer.
 */
struct rule {
	enum failure_step step;
	long from; /* HTTP status, both ends included */
	long to;
	const char *reason; /* NULL: any */
	enum verdict verdict;
	const char *permission; /* what is missing where Google does not name it; NULL: nothing */
	const char *detail;
};

static const struct rule rules[] = {
	/* The OAuth2 endpoint: RFC 6749 section 5.2 and Google's additions to it. */
	{FAILURE_STEP_SOURCE, 400, 499, "invalid_grant", LOGIN_GONE, NULL,
	 "the refresh token has expired or was revoked: {repair}"},
	{FAILURE_STEP_SOURCE, 400, 499, "invalid_rapt", LOGIN_GONE, NULL,
	 "the organisation's session length is over: {repair}"},
	{FAILURE_STEP_SOURCE, 400, 499, "rapt_required", LOGIN_GONE, NULL,
	 "the organisation asks for the login again: {repair}"},
	{FAILURE_STEP_SOURCE, 400, 499, "invalid_client", LOGIN_GONE, NULL,
	 "the file's OAuth client is not known or its client_secret is wrong: {repair}"},
	{FAILURE_STEP_SOURCE, 400, 499, "unauthorized_client", LOGIN_GONE, NULL,
	 "the refresh token is not of the file's OAuth client: {repair}"},
	{FAILURE_STEP_SOURCE, 400, 499, "deleted_client", LOGIN_GONE, NULL,
	 "the file's OAuth client was deleted: {repair}"},
	{FAILURE_STEP_SOURCE, 400, 499, "invalid_scope", DENIED, NULL,
	 "the login was not given the scope it needs: {repair}"},
	{FAILURE_STEP_SOURCE, 400, 499, "access_denied", DENIED, NULL,
	 "a policy of the organisation keeps this login from Google's APIs: ask its administrator"},
	{FAILURE_STEP_SOURCE, 400, 499, "internal_failure", AGAIN, NULL,
	 "the OAuth2 endpoint has a fault; it is tried again"},
	{FAILURE_STEP_SOURCE, 400, 499, "server_error", AGAIN, NULL,
	 "the OAuth2 endpoint has a fault; it is tried again"},
	{FAILURE_STEP_SOURCE, 400, 499, "temporarily_unavailable", AGAIN, NULL,
	 "the OAuth2 endpoint is overloaded; it is tried again"},
	{FAILURE_STEP_SOURCE, 400, 401, NULL, DENIED, NULL,
	 "the OAuth2 endpoint refused the request: check the credential file, or {repair}"},
	{FAILURE_STEP_SOURCE, 403, 403, NULL, DENIED, NULL,
	 "the OAuth2 endpoint, or a proxy on the way, does not let the request in: check the proxy, "
	 "or {repair}"},
	{FAILURE_STEP_SOURCE, 404, 404, NULL, DENIED, NULL,
	 "there is no OAuth2 endpoint at that address: check oauth2 under [endpoints]"},
	{FAILURE_STEP_SOURCE, 429, 429, NULL, AGAIN, NULL,
	 "the OAuth2 endpoint asks to wait; it is tried again"},
	{FAILURE_STEP_SOURCE, 500, 599, NULL, AGAIN, NULL,
	 "the OAuth2 endpoint has a fault; it is tried again"},
	{FAILURE_STEP_SOURCE, 300, 399, NULL, AGAIN, NULL,
	 "the OAuth2 endpoint answered with a redirect, which is never followed: check oauth2 under "
	 "[endpoints] and the proxy"},
	{FAILURE_STEP_SOURCE, 0, 999, NULL, AGAIN, NULL,
	 "the OAuth2 endpoint gave an answer that is not expected; it is tried again"},

	/* The subject token's URL: whatever server that is. */
	{FAILURE_STEP_SUBJECT, 401, 403, NULL, DENIED, NULL,
	 "the server of the subject token refused the request: check credential_source.headers in "
	 "the credential file"},
	{FAILURE_STEP_SUBJECT, 404, 404, NULL, DENIED, NULL,
	 "there is no subject token at that address: check credential_source.url in the credential "
	 "file"},
	{FAILURE_STEP_SUBJECT, 300, 399, NULL, AGAIN, NULL,
	 "the server of the subject token answered with a redirect, which is never followed: check "
	 "credential_source.url in the credential file"},
	{FAILURE_STEP_SUBJECT, 0, 999, NULL, AGAIN, NULL,
	 "the server of the subject token gave an answer that is not expected; it is tried again"},

	/* Token exchange: RFC 8693 section 2.2.2 and Google's additions to it. */
	{FAILURE_STEP_EXCHANGE, 400, 499, "invalid_grant", LOGIN_GONE, NULL,
	 "the subject token is not accepted: it has expired, is older than an hour, or is of another "
	 "issuer; renew it where credential_source says, it is read anew at each try{age}{skew}"},
	{FAILURE_STEP_EXCHANGE, 400, 499, "invalid_target", DENIED, NULL,
	 "there is no such provider: check audience in the credential file (the project's number, "
	 "pool and provider) and that pool and provider are enabled"},
	{FAILURE_STEP_EXCHANGE, 400, 499, "unauthorized_client", DENIED, NULL,
	 "the provider's attribute condition does not admit this subject token: check its "
	 "attribute condition and mapping"},
	{FAILURE_STEP_EXCHANGE, 400, 499, "invalid_client", DENIED, NULL,
	 "client_id and client_secret of the credential file are not accepted: create them anew"},
	{FAILURE_STEP_EXCHANGE, 400, 499, "invalid_scope", DENIED, NULL,
	 "the token service does not give the scope cloud-platform: check the pool's policy"},
	{FAILURE_STEP_EXCHANGE, 400, 499, "access_denied", DENIED, NULL,
	 "a policy of the organisation refuses the exchange: ask its administrator"},
	{FAILURE_STEP_EXCHANGE, 400, 499, "internal_failure", AGAIN, NULL,
	 "the token service has a fault; it is tried again"},
	{FAILURE_STEP_EXCHANGE, 400, 499, "server_error", AGAIN, NULL,
	 "the token service has a fault; it is tried again"},
	{FAILURE_STEP_EXCHANGE, 400, 499, "temporarily_unavailable", AGAIN, NULL,
	 "the token service is overloaded; it is tried again"},
	{FAILURE_STEP_EXCHANGE, 400, 401, NULL, DENIED, NULL,
	 "the token service refused the exchange: check audience, subject_token_type and "
	 "workforce_pool_user_project in the credential file"},
	{FAILURE_STEP_EXCHANGE, 403, 403, NULL, DENIED, "serviceusage.services.use",
	 "the exchange is not allowed: for a workforce pool the principal needs "
	 "roles/serviceusage.serviceUsageConsumer on workforce_pool_user_project; a proxy on the way "
	 "can answer so too"},
	{FAILURE_STEP_EXCHANGE, 404, 404, NULL, DENIED, NULL,
	 "there is no token service at that address: check sts under [endpoints]"},
	{FAILURE_STEP_EXCHANGE, 429, 429, NULL, AGAIN, NULL,
	 "the quota of the token service is used up; it is tried again"},
	{FAILURE_STEP_EXCHANGE, 500, 599, NULL, AGAIN, NULL,
	 "the token service has a fault; it is tried again"},
	{FAILURE_STEP_EXCHANGE, 300, 399, NULL, AGAIN, NULL,
	 "the token service answered with a redirect, which is never followed: check sts under "
	 "[endpoints] and the proxy"},
	{FAILURE_STEP_EXCHANGE, 0, 999, NULL, AGAIN, NULL,
	 "the token service gave an answer that is not expected; it is tried again"},

	/* The metadata server of the machine. */
	{FAILURE_STEP_METADATA, 404, 404, NULL, DENIED, NULL,
	 "the machine has no service account: give the VM one, or use another source"},
	{FAILURE_STEP_METADATA, 400, 407, NULL, DENIED, NULL,
	 "the metadata server refuses the request: check metadata_host under [source], and what may "
	 "reach the metadata server"},
	{FAILURE_STEP_METADATA, 300, 399, NULL, AGAIN, NULL,
	 "the metadata server answered with a redirect, which is never followed: check metadata_host "
	 "under [source]"},
	{FAILURE_STEP_METADATA, 0, 999, NULL, AGAIN, NULL,
	 "the metadata server has a fault; it is tried again"},

	/* generateAccessToken for the source's own account; what is not here is as with the mint. */
	{FAILURE_STEP_IMPERSONATE, 400, 400, NULL, DENIED, NULL,
	 "Google does not accept what is asked for: check service_account_impersonation_url, "
	 "delegates and service_account_impersonation.token_lifetime_seconds of the credential file"},
	{FAILURE_STEP_IMPERSONATE, 403, 403, "IAM_PERMISSION_DENIED", DENIED, GET_ACCESS_TOKEN,
	 "{caller} may not use {account}, which service_account_impersonation_url names: grant it "
	 "roles/iam.workloadIdentityUser (a pool's principal) or "
	 "roles/iam.serviceAccountTokenCreator on that account itself, with: " ADD_BINDING
	 "ROLE; it takes minutes to count, and an account that does not exist looks the same"},
	{FAILURE_STEP_IMPERSONATE, 404, 404, NULL, NO_ACCOUNT, NULL,
	 "there is no account as service_account_impersonation_url of the credential file names it, "
	 "or a delegate was deleted"},

	/* generateAccessToken: ErrorInfo of AIP-193, reasons of google/api/error_reason.proto. */
	{FAILURE_STEP_MINT, 400, 400, NULL, DENIED, NULL,
	 "Google does not accept what is asked for: check scopes, delegates and lifetime of the "
	 "profile (above 1h the account must be listed in "
	 "constraints/iam.allowServiceAccountCredentialLifetimeExtension)"},
	{FAILURE_STEP_MINT, 401, 401, "ACCESS_TOKEN_TYPE_UNSUPPORTED", DENIED, NULL,
	 "Google takes no token of that kind: where a service account's key signs it, key or account "
	 "was deleted or disabled ({repair}); else use a login or a service account's key{skew}"},
	{FAILURE_STEP_MINT, 401, 401, "ACCOUNT_STATE_INVALID", AGAIN_NEW_TOKEN, NULL,
	 "{caller} is disabled or was deleted: a service account is enabled with: gcloud iam "
	 "service-accounts enable {caller}; else use another source"},
	{FAILURE_STEP_MINT, 401, 401, NULL, AGAIN_NEW_TOKEN, NULL,
	 "the source's own token was refused: check the host's clock and that the key or login was "
	 "not revoked, or {repair}{skew}"},
	{FAILURE_STEP_MINT, 403, 403, "IAM_PERMISSION_DENIED", DENIED, GET_ACCESS_TOKEN,
	 TOKEN_CREATOR "; a new grant takes minutes to count, and an account that does not exist "
		       "looks the same"},
	{FAILURE_STEP_MINT, 403, 403, "SERVICE_DISABLED", DENIED, NULL,
	 "the API is off in the source's project: gcloud services enable {service} "
	 "--project={project}; it takes minutes to count"},
	{FAILURE_STEP_MINT, 403, 403, "ACCESS_TOKEN_SCOPE_INSUFFICIENT", DENIED, NULL,
	 "the source's token lacks the scope cloud-platform: {repair}"},
	{FAILURE_STEP_MINT, 403, 403, "USER_PROJECT_DENIED", DENIED, "serviceusage.services.use",
	 "the source may not use quota_project: remove it from [source], or grant the source "
	 "roles/serviceusage.serviceUsageConsumer there"},
	{FAILURE_STEP_MINT, 403, 403, "SECURITY_POLICY_VIOLATED", DENIED, NULL,
	 "a perimeter of VPC Service Controls refuses the call: ask its administrator, who finds it "
	 "by the unique id {perimeter}"},
	{FAILURE_STEP_MINT, 403, 403, "ORG_RESTRICTION_VIOLATION", DENIED, NULL,
	 "the organisation's restrictions refuse the call: ask its administrator"},
	{FAILURE_STEP_MINT, 403, 403, "BILLING_DISABLED", DENIED, NULL,
	 "billing is off in the source's project: turn it on there"},
	{FAILURE_STEP_MINT, 403, 403, "CONSUMER_INVALID", DENIED, NULL,
	 "the project that the call is billed to does not exist: check quota_project"},
	{FAILURE_STEP_MINT, 403, 403, "CONSUMER_SUSPENDED", DENIED, NULL,
	 "the project that the call is billed to is suspended"},
	{FAILURE_STEP_MINT, 403, 403, NULL, DENIED, GET_ACCESS_TOKEN,
	 "the call is not allowed: " TOKEN_CREATOR "; a proxy on the way can answer so too"},
	{FAILURE_STEP_MINT, 404, 404, NULL, NO_ACCOUNT, NULL,
	 "there is no such service account: check service_account and delegates of the profile, and "
	 "that none was deleted"},
	{FAILURE_STEP_MINT, 429, 429, NULL, AGAIN, NULL,
	 "the quota of the project for the IAM Credentials API is used up; it is tried again"},
	{FAILURE_STEP_MINT, 500, 599, NULL, AGAIN, NULL,
	 "the IAM Credentials API has a fault; it is tried again"},
	{FAILURE_STEP_MINT, 300, 399, NULL, AGAIN, NULL,
	 "the answer is a redirect, which is never followed: check iamcredentials under [endpoints] "
	 "and the proxy"},
	{FAILURE_STEP_MINT, 0, 999, NULL, AGAIN, NULL,
	 "the answer is not expected; it is tried again"},
};

struct connection_rule {
	const char *reason;
	const char *detail;
};

/*
 * No answer at all. Always transient, as nothing was said about the account; a certificate, too: what mends
 * it is a clock or a bundle that is set right, and the backoff grows to what a permanent failure is held.
 */
static const struct connection_rule connection_rules[] = {
	[HTTP_FAILURE_RESOLVE] = {"resolve", "the host's name has no address: check DNS"},
	[HTTP_FAILURE_CONNECT] = {"connect", "no connection: check the network and the proxy"},
	[HTTP_FAILURE_TLS] = {"tls", "the TLS handshake failed: check the proxy"},
	[HTTP_FAILURE_CERTIFICATE] = {"certificate",
				      "the server's certificate is not trusted: check the clock, "
				      "ca_file under [endpoints], and the proxy"},
	[HTTP_FAILURE_TIMEOUT] = {"timeout", "no answer in time"},
	[HTTP_FAILURE_BROKEN] = {"broken", "the connection ended before the whole answer came"},
	[HTTP_FAILURE_TOO_LARGE] = {"too_large", "the answer is larger than any that is expected"},
	[HTTP_FAILURE_OTHER] = {"other", "the call could not be made"},
};

const char *failure_public_text(enum failure_public public)
{
	switch (public) {
	case FAILURE_TEMPORARY:
		return "credential temporarily unavailable";
	case FAILURE_NOT_ALLOWED:
		return "the broker may not use this account";
	case FAILURE_NO_ACCOUNT:
		return "account not available";
	case FAILURE_LOGIN_EXPIRED:
		return "the host's login has expired";
	}
	return "credential temporarily unavailable";
}

const char *failure_step_name(enum failure_step step)
{
	switch (step) {
	case FAILURE_STEP_SOURCE:
		return "source";
	case FAILURE_STEP_MINT:
		return "generateAccessToken";
	case FAILURE_STEP_SUBJECT:
		return "subject_token";
	case FAILURE_STEP_EXCHANGE:
		return "sts";
	case FAILURE_STEP_IMPERSONATE:
		return "impersonate";
	case FAILURE_STEP_METADATA:
		return "metadata";
	case FAILURE_STEP_GCLOUD:
		return "gcloud";
	}
	return "source";
}

const char *failure_class_name(enum failure_class class)
{
	return class == FAILURE_PERMANENT ? "permanent" : "transient";
}

/* Copies what somebody else chose, if it is one word that fits; else the fallback. */
static void copy_word(char *out, size_t size, const char *word, const char *others,
		      const char *fallback)
{
	const bool sane = word && strlen(word) < size && text_is_of(word, others);

	(void)snprintf(out, size, "%s", sane ? word : fallback);
}

/* The first ErrorInfo among the details; NULL where there is none. */
static const json_t *error_info(const json_t *body)
{
	const json_t *const details = json_object_get(json_object_get(body, "error"), "details");
	size_t i;
	const json_t *detail;

	json_array_foreach(details, i, detail) {
		const char *const type = json_get_string(detail, "@type");
		if (type && !strcmp(type, "type.googleapis.com/google.rpc.ErrorInfo"))
			return detail;
	}
	return NULL;
}

/* Google's endpoint sometimes says one of these where the description is. */
static const char *fault_in_description(const json_t *body)
{
	static const char *const words[] = {"internal_failure", "server_error",
					    "temporarily_unavailable"};
	const char *const description = json_get_string(body, "error_description");

	for (size_t i = 0; description && i < ARRAY_LEN(words); i++)
		if (!strcmp(description, words[i]))
			return words[i];
	return NULL;
}

/* The OAuth2 error, or the subtype where it says more: that the login itself has run out. */
static const char *oauth2_error(const json_t *body)
{
	const char *const error = json_get_string(body, "error");
	const char *const subtype = json_get_string(body, "error_subtype");
	const char *const fault = fault_in_description(body);

	if (error && fault)
		return fault;
	if (!error || strcmp(error, "invalid_grant") != 0 || !subtype)
		return error;
	if (!strcmp(subtype, "invalid_rapt") || !strcmp(subtype, "rapt_required"))
		return subtype;
	return error;
}

/* Two steps make the same call; the rules of the second follow those of the first. */
static bool is_of_step(const struct rule *rule, enum failure_step step)
{
	return rule->step == step ||
	       (step == FAILURE_STEP_IMPERSONATE && rule->step == FAILURE_STEP_MINT);
}

static const struct rule *find_rule(const struct failure *failure)
{
	const struct rule *rule = rules;

	for (; rule < rules + ARRAY_LEN(rules) - 1; rule++)
		if (is_of_step(rule, failure->step) && failure->http_status >= rule->from &&
		    failure->http_status <= rule->to &&
		    (!rule->reason || !strcmp(rule->reason, failure->reason)))
			break;
	return rule;
}

static bool is_iam(enum failure_step step)
{
	return step == FAILURE_STEP_MINT || step == FAILURE_STEP_IMPERSONATE;
}

static bool is_oauth2(enum failure_step step)
{
	return step == FAILURE_STEP_SOURCE || step == FAILURE_STEP_EXCHANGE;
}

/* Names only what the answer itself says; the scene may still be filled in. */
static void set_hint(struct failure *failure, const char *hint)
{
	static const struct failure_scene nothing = {0};

	failure->hint = hint;
	failure_fill(failure, &nothing);
	failure->hint = hint;
}

static void from_connection(struct failure *failure, enum http_failure what)
{
	const struct connection_rule *const rule = &connection_rules[what];

	failure->class = FAILURE_TRANSIENT;
	failure->public = FAILURE_TEMPORARY;
	copy_word(failure->reason, sizeof(failure->reason), rule->reason, "_", "unknown");
	set_hint(failure, rule->detail);
}

/* What ErrorInfo says beside its reason. */
static void copy_metadata(struct failure *failure, const json_t *metadata, const struct rule *rule)
{
	static const char projects[] = "projects/";
	const char *const consumer = json_get_string(metadata, "consumer");
	const bool is_project = consumer && !strncmp(consumer, projects, strlen(projects));

	copy_word(failure->permission, sizeof(failure->permission),
		  json_get_string(metadata, "permission"), ".",
		  rule->permission ? rule->permission : "");
	copy_word(failure->project, sizeof(failure->project),
		  is_project ? consumer + strlen(projects) : NULL, "-.:", "");
	copy_word(failure->perimeter, sizeof(failure->perimeter), json_get_string(metadata, "uid"),
		  "-_", "");
	copy_word(failure->service, sizeof(failure->service), json_get_string(metadata, "service"),
		  "-.", "");
}

void failure_from_answer(struct failure *failure, enum failure_step step,
			 const struct http_answer *answer)
{
	*failure = (struct failure){.step = step};
	if (answer->failure != HTTP_FAILURE_NONE) {
		from_connection(failure, answer->failure);
		return;
	}
	failure->http_status = answer->status;
	failure->date_s = answer->date_s > 0 ? answer->date_s : 0;
	if (answer->retry_after_s > 0)
		failure->retry_after_s = answer->retry_after_s < MAX_RETRY_AFTER_S ?
						 answer->retry_after_s :
						 MAX_RETRY_AFTER_S;
	json_auto_t *body = json_read_object(answer->body, answer->body_len);
	const json_t *const info = is_iam(step) ? error_info(body) : NULL;
	const char *reason = json_get_string(info, "reason");
	if (is_oauth2(step))
		reason = oauth2_error(body);
	copy_word(failure->reason, sizeof(failure->reason), reason, "_.-", "unknown");

	const struct rule *const rule = find_rule(failure);
	failure->class = verdicts[rule->verdict].class;
	failure->public = verdicts[rule->verdict].public;
	failure->source_token_refused = verdicts[rule->verdict].source_token_refused;
	if (answer->status == 403)
		copy_metadata(failure, json_object_get(info, "metadata"), rule);
	set_hint(failure, rule->detail);
}

void failure_set(struct failure *failure, enum failure_step step, enum failure_class class,
		 const char *reason, const char *fmt, ...)
{
	va_list ap;

	*failure = (struct failure){
		.step = step,
		.class = class,
		.public = class == FAILURE_TRANSIENT ? FAILURE_TEMPORARY : FAILURE_NOT_ALLOWED,
	};
	copy_word(failure->reason, sizeof(failure->reason), reason, "_.-", "unknown");
	va_start(ap, fmt);
	(void)vsnprintf(failure->detail, sizeof(failure->detail), fmt, ap);
	va_end(ap);
}

void failure_set_no_grant(struct failure *failure)
{
	failure_set(failure, FAILURE_STEP_MINT, FAILURE_PERMANENT, "grant_missing", "%s", "");
	copy_word(failure->permission, sizeof(failure->permission), GET_ACCESS_TOKEN, ".", "");
	set_hint(failure, TOKEN_CREATOR "; a new grant takes minutes to count");
}
