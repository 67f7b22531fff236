/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/emulator_fixture.h"

#include "broker/base/compiler.h"
#include "broker/base/strv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define EMAIL_1 "agent-7@my-project.iam.gserviceaccount.com"
#define SCOPE_1A "https://www.googleapis.com/auth/cloud-platform"
#define SCOPE_1B "https://www.googleapis.com/auth/userinfo.email"
#define ACCOUNT_1                                                                      \
	"{\"aliases\":[\"default\"],\"email\":\"" EMAIL_1 "\",\"scopes\":[\"" SCOPE_1A \
	"\",\"" SCOPE_1B "\"]}"
#define ACCOUNTS_1 "{\"default\":" ACCOUNT_1 ",\"" EMAIL_1 "\":" ACCOUNT_1 "}"
#define INSTANCE_1 "{\"serviceAccounts\":" ACCOUNTS_1 "}"
#define PROJECT_1 "{\"numericProjectId\":123456789012,\"projectId\":\"my-project\"}"
#define UNIVERSE_1 "{\"universeDomain\":\"googleapis.com\"}"
#define V1_1 "{\"instance\":" INSTANCE_1 ",\"project\":" PROJECT_1 ",\"universe\":" UNIVERSE_1 "}"

#define EMAIL_2 "reader.two@rival-42.iam.gserviceaccount.com"
#define SCOPE_2 "https://www.googleapis.com/auth/devstorage.read_only"
#define ACCOUNT_2 \
	"{\"aliases\":[\"default\"],\"email\":\"" EMAIL_2 "\",\"scopes\":[\"" SCOPE_2 "\"]}"
#define ACCOUNTS_2 "{\"default\":" ACCOUNT_2 ",\"" EMAIL_2 "\":" ACCOUNT_2 "}"
#define INSTANCE_2 "{\"serviceAccounts\":" ACCOUNTS_2 "}"
#define PROJECT_2 "{\"projectId\":\"rival-42\"}"
#define UNIVERSE_2 "{\"universeDomain\":\"cloud.example\"}"
#define V1_2 "{\"instance\":" INSTANCE_2 ",\"project\":" PROJECT_2 ",\"universe\":" UNIVERSE_2 "}"

#define DIRECTORY EMULATOR_ROUTE_DIRECTORY
#define V1 "/computeMetadata/v1/"
#define ACCOUNT V1 "instance/service-accounts/{acct}/"

static const struct expected_route numbered_routes[] = {
	{"/", DIRECTORY, "computeMetadata/\n", "{\"computeMetadata\":{\"v1\":" V1_1 "}}"},
	{"/computeMetadata/", DIRECTORY, "v1/\n", "{\"v1\":" V1_1 "}"},
	{V1, DIRECTORY, "instance/\nproject/\nuniverse/\n", V1_1},
	{V1 "instance/", DIRECTORY, "service-accounts/\n", INSTANCE_1},
	{V1 "project/", DIRECTORY, "numeric-project-id\nproject-id\n", PROJECT_1},
	{V1 "universe/", DIRECTORY, "universe-domain\n", UNIVERSE_1},
	{V1 "project/project-id", EMULATOR_ROUTE_PROJECT_ID, "my-project", "\"my-project\""},
	{V1 "project/numeric-project-id", EMULATOR_ROUTE_PROJECT_NUMBER, "123456789012",
	 "123456789012"},
	{V1 "universe/universe-domain", EMULATOR_ROUTE_UNIVERSE_DOMAIN, "googleapis.com",
	 "\"googleapis.com\""},
	{V1 "instance/service-accounts/", DIRECTORY, "default/\n" EMAIL_1 "/\n", ACCOUNTS_1},
	{ACCOUNT, EMULATOR_ROUTE_ACCOUNT, "aliases\nemail\nscopes\ntoken\n", ACCOUNT_1},
	{ACCOUNT "email", EMULATOR_ROUTE_EMAIL, EMAIL_1, "\"" EMAIL_1 "\""},
	{ACCOUNT "aliases", EMULATOR_ROUTE_ALIASES, "default\n", "[\"default\"]"},
	{ACCOUNT "scopes", EMULATOR_ROUTE_SCOPES, SCOPE_1A "\n" SCOPE_1B "\n",
	 "[\"" SCOPE_1A "\",\"" SCOPE_1B "\"]"},
	{ACCOUNT "token", EMULATOR_ROUTE_TOKEN, NULL, NULL},
};

static const struct expected_route plain_routes[] = {
	{"/", DIRECTORY, "computeMetadata/\n", "{\"computeMetadata\":{\"v1\":" V1_2 "}}"},
	{"/computeMetadata/", DIRECTORY, "v1/\n", "{\"v1\":" V1_2 "}"},
	{V1, DIRECTORY, "instance/\nproject/\nuniverse/\n", V1_2},
	{V1 "instance/", DIRECTORY, "service-accounts/\n", INSTANCE_2},
	{V1 "project/", DIRECTORY, "project-id\n", PROJECT_2},
	{V1 "universe/", DIRECTORY, "universe-domain\n", UNIVERSE_2},
	{V1 "project/project-id", EMULATOR_ROUTE_PROJECT_ID, "rival-42", "\"rival-42\""},
	{V1 "universe/universe-domain", EMULATOR_ROUTE_UNIVERSE_DOMAIN, "cloud.example",
	 "\"cloud.example\""},
	{V1 "instance/service-accounts/", DIRECTORY, "default/\n" EMAIL_2 "/\n", ACCOUNTS_2},
	{ACCOUNT, EMULATOR_ROUTE_ACCOUNT, "aliases\nemail\nscopes\ntoken\n", ACCOUNT_2},
	{ACCOUNT "email", EMULATOR_ROUTE_EMAIL, EMAIL_2, "\"" EMAIL_2 "\""},
	{ACCOUNT "aliases", EMULATOR_ROUTE_ALIASES, "default\n", "[\"default\"]"},
	{ACCOUNT "scopes", EMULATOR_ROUTE_SCOPES, SCOPE_2 "\n", "[\"" SCOPE_2 "\"]"},
	{ACCOUNT "token", EMULATOR_ROUTE_TOKEN, NULL, NULL},
};

static const struct strv numbered_scopes = {(char *[]){SCOPE_1A, SCOPE_1B}, 2};
static const struct strv plain_scopes = {(char *[]){SCOPE_2}, 1};

static const struct emulator_identity numbered_identity = {
	.email = EMAIL_1,
	.project = "my-project",
	.project_number = "123456789012",
	.universe_domain = "googleapis.com",
	.scopes = &numbered_scopes,
	.advertised_host = "host.docker.internal",
};

static const struct emulator_identity plain_identity = {
	.email = EMAIL_2,
	.project = "rival-42",
	.universe_domain = "cloud.example",
	.scopes = &plain_scopes,
};

const struct profile profiles[PROFILE_COUNT] = {
	[PROFILE_NUMBERED] = {&numbered_identity, numbered_routes, ARRAY_LEN(numbered_routes)},
	[PROFILE_PLAIN] = {&plain_identity, plain_routes, ARRAY_LEN(plain_routes)},
};

bool expected_is_directory(const struct expected_route *expected)
{
	return expected->path[strlen(expected->path) - 1] == '/';
}

static size_t add_spellings(const struct expected_route *expected, const char *account,
			    struct spelling *out)
{
	const char *const gap = strstr(expected->path, "{acct}");
	const int head = (int)(gap ? (size_t)(gap - expected->path) : strlen(expected->path));
	const char *const tail = gap ? gap + strlen("{acct}") : "";

	out[0].expected = expected;
	(void)snprintf(out[0].path, sizeof(out[0].path), "%.*s%s%s", head, expected->path,
		       gap ? account : "", tail);
	if (!expected_is_directory(expected) || !strcmp(expected->path, "/"))
		return 1;
	out[1] = out[0];
	out[1].path[strlen(out[1].path) - 1] = '\0';
	return 2;
}

size_t fixture_spellings(const struct profile *profile, struct spelling out[static SPELLINGS_MAX])
{
	const bool numbered = profile == &profiles[PROFILE_NUMBERED];
	const char *const accounts[] = {
		"default",
		numbered ? EMAIL_1 : EMAIL_2,
		numbered ? "agent-7%40my-project.iam.gserviceaccount.com" :
			   "reader.two%40rival-42.iam.gserviceaccount.com",
	};
	size_t count = 0;

	for (size_t i = 0; i < profile->route_count; i++) {
		const struct expected_route *const expected = &profile->routes[i];
		const size_t names = strstr(expected->path, "{acct}") ? ARRAY_LEN(accounts) : 1;
		for (size_t a = 0; a < names; a++)
			count += add_spellings(expected, accounts[a], out + count);
	}
	return count;
}

struct emulator_header fixture_header(const char *name, const char *value)
{
	return (struct emulator_header){name, strlen(name), value, strlen(value)};
}

struct emulator_request fixture_request(const char *method, const char *target, size_t target_len)
{
	/* As google-auth sends them. */
	static const struct emulator_header headers[] = {
		{"Host", 4, FIXTURE_HOST, sizeof(FIXTURE_HOST) - 1},
		{"User-Agent", 10, "python-requests/2.32.3", 22},
		{"Accept-Encoding", 15, "gzip, deflate", 13},
		{"metadata-flavor", 15, "Google", 6},
	};

	return (struct emulator_request){
		.method = method,
		.target = target,
		.target_len = target_len,
		.headers = headers,
		.header_count = ARRAY_LEN(headers),
		.local_ip = FIXTURE_LOCAL_IP,
	};
}

static const struct {
	unsigned status;
	const char *body;
	const char *allow;
	bool close;
} refusals[EMULATOR_REFUSAL_COUNT] = {
	[EMULATOR_REFUSAL_MALFORMED] = {400, "Bad Request.\n", NULL, true},
	[EMULATOR_REFUSAL_BODY] = {413, "Request bodies are not accepted.\n", NULL, true},
	[EMULATOR_REFUSAL_PEER] = {403, "Forbidden.\n", NULL, false},
	[EMULATOR_REFUSAL_FORWARDED] = {403, "Request with X-Forwarded-For is not allowed.\n", NULL,
					false},
	[EMULATOR_REFUSAL_HOST] = {403, "Host is not this server's.\n", NULL, false},
	[EMULATOR_REFUSAL_FLAVOR] = {403, "Missing Metadata-Flavor:Google header.\n", NULL, false},
	[EMULATOR_REFUSAL_PATH] = {404, "Not Found.\n", NULL, false},
	[EMULATOR_REFUSAL_METHOD] = {405, "Method Not Allowed.\n", "GET, HEAD", false},
};

static void expect(bool holds, const char *what, const char *detail,
		   const struct emulator_reply *reply)
{
	if (!holds)
		fail_msg("%s: %s (status %u, route %d, refusal %d, body %.*s)", what, detail,
			 reply->status, (int)reply->route, (int)reply->refusal,
			 (int)reply->body_len, reply->body ? reply->body : "");
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static bool is_body(const struct emulator_reply *reply, const char *body)
{
	return reply->body && reply->body_len == strlen(body) &&
	       !memcmp(reply->body, body, reply->body_len);
}

void expect_refusal(const struct emulator_reply *reply, enum emulator_refusal refusal,
		    const char *what)
{
	expect(reply->refusal == refusal, what, "refusal", reply);
	expect(reply->status == refusals[refusal].status, what, "status", reply);
	expect(is_body(reply, refusals[refusal].body), what, "body", reply);
	expect(same_text(reply->content_type, "text/plain"), what, "type", reply);
	expect(same_text(reply->allow, refusals[refusal].allow), what, "Allow", reply);
	expect(reply->close == refusals[refusal].close, what, "close", reply);
	if (refusal != EMULATOR_REFUSAL_METHOD)
		expect(reply->route == EMULATOR_ROUTE_NONE, what, "route", reply);
}

void expect_content(const struct emulator_reply *reply, enum emulator_route route, const char *type,
		    const char *body, const char *what)
{
	expect(reply->status == 200, what, "status", reply);
	expect(is_body(reply, body), what, "body", reply);
	expect(same_text(reply->content_type, type), what, "type", reply);
	expect(reply->route == route, what, "route", reply);
	expect(reply->refusal == EMULATOR_REFUSAL_NONE, what, "refusal", reply);
	expect(!reply->allow, what, "Allow", reply);
	expect(!reply->close, what, "close", reply);
}
