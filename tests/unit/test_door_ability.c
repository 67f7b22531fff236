/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/plan/door_ability.h"

#include "broker/base/err.h"
#include "sandbox/plan/engine_kind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* A good Docker, with one thing different in each line; what is NULL or false is as it was. */
static const struct {
	enum engine_kind kind;
	bool rootless;
	const char *version;
	const char *kernel;
	const char *runtime;
	const char *driver;
	const char *network;
	const char *said; /* NULL: it is able */
} cases[] = {
	{.said = NULL},
	{.runtime = "crun"},
	{.runtime = "youki"},
	{.runtime = "io.containerd.runc.v2"},
	{.runtime = "runsc", .said = "\"runsc\""},
	{.runtime = "io.containerd.kata.v2", .said = "runc, crun or youki"},
	{.runtime = "RUNC", .said = "\"RUNC\""},
	{.kernel = "5.14.0-162.el9"},
	{.kernel = "6.1.0-13-amd64"},
	{.kernel = "5.13.19", .said = "5.14 or later"},
	{.kernel = "4.19.0", .said = "\"4.19.0\""},
	{.driver = "bridge", .network = "mine"},
	{.network = "none"},
	{.driver = "macvlan", .network = "lan", .said = "network lan has the driver \"macvlan\""},
	{.driver = "ipvlan", .network = "lan", .said = "a bridge network or none"},
	{.driver = "overlay", .network = "lan", .said = "\"overlay\""},
	{.driver = "host", .network = "lan", .said = "\"host\""},
	{.rootless = true, .said = "rootless docker 24.0.7"},
	{.kind = ENGINE_PODMAN, .version = "4.3.1", .network = "none"},
	{.kind = ENGINE_PODMAN, .version = "4.3.1", .network = "none", .rootless = true},
	{.kind = ENGINE_PODMAN, .version = "5.2.0", .said = "podman 5.2.0"},
	{.kind = ENGINE_PODMAN, .version = "5.2.0", .network = "x", .said = "--network none"},
	{.kind = ENGINE_PODMAN, .version = "3.4.4", .network = "none", .said = "4.3 or later"},
};

static void what_lacks_the_ability_is_told_the_way_out_and_its_price(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct engine_facts engine = {
			.kind = cases[i].kind,
			.rootless = cases[i].rootless,
			.version = cases[i].version ? cases[i].version : "24.0.7",
			.kernel = cases[i].kernel ? cases[i].kernel : "6.1.0",
			.runtime = cases[i].runtime ? cases[i].runtime : "runc",
			.network_driver = cases[i].driver,
		};
		struct err err = {0};
		const int result = door_check_ability(&engine, cases[i].network, &err);
		assert_int_equal(result, cases[i].said ? -1 : 0);
		if (!cases[i].said)
			continue;
		assert_int_equal(err.code, ERR_UNSUPPORTED);
		if (!strstr(err.text, cases[i].said))
			fail_msg("%zu: %s", i, err.text);
		/* On such a network the gateway is no way out. */
		if (cases[i].driver)
			continue;
		assert_non_null(strstr(err.text, "--attach gateway"));
		assert_non_null(strstr(err.text, "every container on its bridges"));
	}
}

static void the_gateway_is_for_networks_whose_packets_the_host_sees(void **state)
{
	static const struct {
		const char *driver;
		bool good;
	} networks[] = {
		{NULL, true},	    {"bridge", true},  {"null", true},
		{"macvlan", false}, {"ipvlan", false}, {"overlay", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(networks); i++) {
		const struct engine_facts engine = {.network_driver = networks[i].driver};
		struct err err = {0};
		assert_int_equal(gateway_check_ability(&engine, "lan", &err),
				 networks[i].good ? 0 : -1);
		assert_true(networks[i].good ||
			    (strstr(err.text, "lan") && strstr(err.text, "do not see") &&
			     strstr(err.text, "--allow-unverified-firewall")));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_lacks_the_ability_is_told_the_way_out_and_its_price),
		cmocka_unit_test(the_gateway_is_for_networks_whose_packets_the_host_sees),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
