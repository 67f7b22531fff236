/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which Host headers name an endpoint: against DNS rebinding (99designs/aws-vault#578).
 */
#include "emulator/emulator.h"

#include "broker/base/compiler.h"
#include "tests/unit/emulator_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define V4 "172.17.0.1"
#define V6 "fd00:aa::1"
#define MAPPED "::ffff:172.17.0.1"

struct host_case {
	const char *host; /* NULL: none */
	const char *local_ip;
	bool named;
};

static const struct host_case cases[] = {
	/* The names, which do not depend on the address. */
	{"localhost", V4, true},
	{"metadata", V4, true},
	{"metadata.google.internal", V4, true},
	{"host.containers.internal", V4, true},
	{"host.docker.internal", V4, true},
	{"localhost", V6, true},
	{"metadata.google.internal:80", V6, true},
	{"localhost:8174", V4, true},
	{"LOCALHOST:8174", V4, true},
	{"Metadata.Google.Internal", V4, true},
	{"HOST.Docker.Internal:8174", V4, true},
	/* gcp-metadata asks this one with its final dot. */
	{"metadata.google.internal.", V4, true},
	{"metadata.google.internal.:80", V4, true},
	{"localhost.", V4, true},
	{"host.docker.internal.:8174", V4, true},
	{"localhost:", V4, true},
	{"localhost:0", V4, true},
	{"localhost:99999", V4, true},
	{" localhost", V4, true},
	{"\tlocalhost:80 \t", V4, true},
	/* Names that are not ours: rebinding. */
	{"evil.example", V4, false},
	{"evil.example:8174", V4, false},
	{"169.254.169.254.nip.io", V4, false},
	{"172.17.0.1.nip.io", V4, false},
	{"172.17.0.1.evil.example:8174", V4, false},
	{"localhost.evil.example", V4, false},
	{"localhost.localdomain", V4, false},
	{"evil.localhost", V4, false},
	{"xlocalhost", V4, false},
	{"localhos", V4, false},
	{"localhosts", V4, false},
	{"metadata.google.internal.evil.example", V4, false},
	{"evil-metadata.google.internal", V4, false},
	{"metadata.google", V4, false},
	{"metadata.google.interna", V4, false},
	{"google.internal", V4, false},
	{"metadata..google.internal", V4, false},
	{"host.docker.internal.evil.example", V4, false},
	{"gateway.docker.internal", V4, false},
	{"kubernetes.docker.internal", V4, false},
	{"metadata.goog", V4, false},
	/* Final dots: one. */
	{"localhost..", V4, false},
	{"localhost..:80", V4, false},
	{".localhost", V4, false},
	{".", V4, false},
	{"..", V4, false},
	{".:80", V4, false},
	/* Nothing. */
	{NULL, V4, false},
	{"", V4, false},
	{"  ", V4, false},
	{":", V4, false},
	{":80", V4, false},
	/* What is no port. */
	{"localhost:80x", V4, false},
	{"localhost:x", V4, false},
	{"localhost:-1", V4, false},
	{"localhost:+80", V4, false},
	{"localhost: 80", V4, false},
	{"localhost :80", V4, false},
	{"localhost:80:80", V4, false},
	{"localhost::80", V4, false},
	{"localhost:80.", V4, false},
	{"localhost:8\t0", V4, false},
	{"localhost:0x50", V4, false},
	/* What a Host does not have. */
	{"user@localhost", V4, false},
	{"localhost@evil.example", V4, false},
	{"user:secret@172.17.0.1", V4, false},
	{"http://localhost", V4, false},
	{"//localhost", V4, false},
	{"localhost/", V4, false},
	{"localhost/evil", V4, false},
	{"localhost?", V4, false},
	{"localhost#", V4, false},
	{"localhost\\", V4, false},
	{"localhost;", V4, false},
	{"localhost,", V4, false},
	{"localhost,localhost", V4, false},
	{"localhost, evil.example", V4, false},
	{"localhost evil.example", V4, false},
	{"localhost\r", V4, false},
	{"localhost\n", V4, false},
	{"\vlocalhost", V4, false},
	{"\"localhost\"", V4, false},
	{"%6cocalhost", V4, false},
	{"localhost%00", V4, false},
	{"localhost%2e", V4, false},
	{"*", V4, false},
	/* Full-width letters, and the Kelvin sign, whose lower case is an ASCII letter. */
	{"\xef\xbd\x8clocalhost", V4, false},
	{"\xe2\x84\xaa", V4, false},
	/* IPv4: the connection's own address and no other. */
	{V4, V4, true},
	{V4 ":8174", V4, true},
	{V4 ":80", V4, true},
	{V4 ":", V4, true},
	{V4 ".", V4, true},
	{V4 ".:8174", V4, true},
	{"127.0.0.1", "127.0.0.1", true},
	{"169.254.169.254", "169.254.169.254", true},
	{"127.0.0.1", V4, false},
	{"169.254.169.254", V4, false},
	{"172.17.0.2:8174", V4, false},
	{"172.17.0.10", V4, false},
	{"0.0.0.0", V4, false},
	{"127.0.0.1", V6, false},
	{V4 "..", V4, false},
	/* Spellings of IPv4 that some resolvers take, and browsers rewrite before they send them. */
	{"2886795265", V4, false},
	{"0xac110001", V4, false},
	{"0254.021.0.1", V4, false},
	{"172.17.1", V4, false},
	{"172.1114113", V4, false},
	{"172.17.0.01", V4, false},
	{"172.017.0.1", V4, false},
	{"172.17.0.1.1", V4, false},
	{"172.17.0.", V4, false},
	{"[172.17.0.1]", V4, false},
	{"[172.17.0.1]:8174", V4, false},
	/* IPv6: in brackets, compared as an address. */
	{"[::1]", "::1", true},
	{"[::1]:8174", "::1", true},
	{"[::1]:", "::1", true},
	{"[0:0:0:0:0:0:0:1]:80", "::1", true},
	{"[" V6 "]:8174", V6, true},
	{"[FD00:AA:0::1]", V6, true},
	{"[fd00:00aa:0000:0000:0000:0000:0000:0001]", V6, true},
	{"[fd00:aa::2]:8174", V6, false},
	{"[::1]:8174", V6, false},
	{"[::]", V6, false},
	{"[::1]", V4, false},
	{"::1", "::1", false},
	{V6, V6, false},
	{"::1:80", "::1", false},
	{"[::1", "::1", false},
	{"::1]", "::1", false},
	{"[", "::1", false},
	{"[]", "::1", false},
	{"[]:80", "::1", false},
	{"[:]", "::1", false},
	{"[::1]]", "::1", false},
	{"[[::1]]", "::1", false},
	{"[::1]80", "::1", false},
	{"[::1]x", "::1", false},
	{"[::1]:80x", "::1", false},
	{"[::1].", "::1", false},
	{"[::1 ]", "::1", false},
	{"[ ::1]", "::1", false},
	{"[::1.]", "::1", false},
	{"[::1%lo]", "::1", false},
	{"[::1%25lo]:80", "::1", false},
	{"[fe80::1%eth0]", "fe80::1", false},
	{"[::1/128]", "::1", false},
	{"[v1.::1]", "::1", false},
	{"[localhost]", V4, false},
	{"[metadata.google.internal]:80", V4, false},
	{"[0000:0000:0000:0000:0000:0000:0000:0000:0001]", "::1", false},
	{"[0000000000000000000000000000000000000000000000000000000000::1]", "::1", false},
	/* A dual-stack socket says its IPv4 address in IPv6. */
	{V4, MAPPED, true},
	{V4 ":8174", MAPPED, true},
	{"[" MAPPED "]:8174", MAPPED, true},
	{"[::ffff:ac11:1]", MAPPED, true},
	{"[::FFFF:172.17.0.1]", V4, true},
	{"172.17.0.2", MAPPED, false},
	{"[::ffff:172.17.0.2]", MAPPED, false},
	{"[::172.17.0.1]", MAPPED, false},
	{"[64:ff9b::172.17.0.1]", MAPPED, false},
	/* A local address that is none. */
	{"172.17.0.1", "", false},
	{"", "", false},
	{"[::1]", "::1%lo", false},
};

static struct emulator_reply answer(const struct emulator *emulator, const char *const *hosts,
				    size_t count, const char *local_ip)
{
	struct emulator_header headers[4] = {fixture_header("Metadata-Flavor", "Google")};
	struct emulator_request request = fixture_request("GET", "/", 1);
	struct emulator_reply reply;

	request.headers = headers;
	request.header_count = 1;
	request.local_ip = local_ip;
	for (size_t i = 0; i < count; i++)
		headers[request.header_count++] = fixture_header(i ? "HOST" : "host", hosts[i]);
	assert_true(emulator_answer(emulator, &request, &reply));
	return reply;
}

static void expect_named(const struct emulator_reply *reply, bool named, const char *what)
{
	if (named)
		expect_content(reply, EMULATOR_ROUTE_DIRECTORY, "application/text",
			       "computeMetadata/\n", what);
	else
		expect_refusal(reply, EMULATOR_REFUSAL_HOST, what);
}

static void only_a_host_that_names_the_endpoint_is_answered(void **state)
{
	struct emulator *const emulator = emulator_new(profiles[PROFILE_NUMBERED].identity);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char what[160];
		(void)snprintf(what, sizeof(what), "row %zu, Host %s at %s", i,
			       cases[i].host ? cases[i].host : "(none)", cases[i].local_ip);
		const struct emulator_reply reply =
			answer(emulator, &cases[i].host, cases[i].host ? 1 : 0, cases[i].local_ip);
		expect_named(&reply, cases[i].named, what);
	}
	emulator_free(emulator);
}

static void two_hosts_are_refused_whatever_they_say(void **state)
{
	static const char *const pairs[][2] = {
		{FIXTURE_HOST, FIXTURE_HOST},
		{FIXTURE_HOST, "evil.example"},
		{"evil.example", FIXTURE_HOST},
		{"", FIXTURE_HOST},
		{FIXTURE_HOST, ""},
		{"localhost", "metadata"},
	};
	struct emulator *const emulator = emulator_new(profiles[PROFILE_NUMBERED].identity);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		const struct emulator_reply reply = answer(emulator, pairs[i], 2, FIXTURE_LOCAL_IP);
		expect_refusal(&reply, EMULATOR_REFUSAL_HOST, pairs[i][0]);
	}
	emulator_free(emulator);
}

static void the_advertised_host_is_named_only_where_it_is_configured(void **state)
{
	static const struct {
		const char *advertised;
		const char *host;
		bool named;
	} rows[] = {
		{NULL, "host.docker.internal:8174", false},
		{NULL, "localhost", true},
		{"gateway.lan", "gateway.lan:8174", true},
		{"gateway.lan", "Gateway.LAN.", true},
		{"gateway.lan", "host.docker.internal:8174", false},
		{"gateway.lan", "gateway.lan.evil.example", false},
		{"gateway.lan", "gateway", false},
		{"10.9.8.7", "10.9.8.7:8174", true},
		{"10.9.8.7", "10.9.8.8:8174", false},
		{"fd00::7", "[fd00:0::7]:8174", true},
		{"fd00::7", "[fd00::8]:8174", false},
		{"fd00::7", "fd00::7", false},
		{"", "", false},
		{"", ".", false},
		{"", ":80", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct emulator_identity identity = *profiles[PROFILE_PLAIN].identity;
		identity.advertised_host = rows[i].advertised;
		struct emulator *const emulator = emulator_new(&identity);
		const struct emulator_reply reply =
			answer(emulator, &rows[i].host, 1, FIXTURE_LOCAL_IP);
		expect_named(&reply, rows[i].named, rows[i].host);
		emulator_free(emulator);
	}
}

static void a_host_header_without_a_value_pointer_is_refused(void **state)
{
	const struct emulator_header headers[] = {
		{.name = "Host", .name_len = 4},
		fixture_header("Metadata-Flavor", "Google"),
	};
	struct emulator *const emulator = emulator_new(profiles[PROFILE_NUMBERED].identity);
	struct emulator_request request = fixture_request("GET", "/", 1);
	struct emulator_reply reply;

	(void)state;
	request.headers = headers;
	request.header_count = ARRAY_LEN(headers);
	assert_true(emulator_answer(emulator, &request, &reply));
	expect_refusal(&reply, EMULATOR_REFUSAL_HOST, "no value");
	emulator_free(emulator);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_a_host_that_names_the_endpoint_is_answered),
		cmocka_unit_test(two_hosts_are_refused_whatever_they_say),
		cmocka_unit_test(the_advertised_host_is_named_only_where_it_is_configured),
		cmocka_unit_test(a_host_header_without_a_value_pointer_is_refused),
	};

	return cmocka_run_group_tests_name("emulator host", tests, NULL, NULL);
}
