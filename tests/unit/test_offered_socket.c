/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/net/offered_socket.h"

#include "broker/base/err.h"

#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#define NETNS 4711

static struct address address(const char *text)
{
	struct address out;

	assert_int_equal(address_parse(&out, text), 0);
	return out;
}

/* One as it must be for the address. */
static struct offered_socket good(const char *local)
{
	struct offered_socket offered = {
		.type = SOCK_STREAM,
		.protocol = IPPROTO_TCP,
		.is_listening = true,
		.local = address(local),
		.device = "lo",
		.interface = LOOPBACK_INTERFACE,
		.netns = NETNS,
	};

	offered.domain = offered.local.any.sa_family;
	return offered;
}

/* What is wrong with it where it is to listen at that address; NULL: nothing. */
static const char *fault(const struct offered_socket *offered, const char *local)
{
	static struct err err;
	const struct offered_socket_terms terms = {.local = address(local), .netns = NETNS};

	return offered_socket_judge(offered, &terms, &err) ? err.text : NULL;
}

#define V4 "169.254.169.254:80"
#define V6 "[fd20:ce::254]:80"

static void the_socket_of_a_door_is_taken(void **state)
{
	const struct offered_socket v4 = good(V4);
	const struct offered_socket v6 = good(V6);

	(void)state;
	assert_null(fault(&v4, V4));
	assert_null(fault(&v6, V6));
}

static void each_fault_is_named(void **state)
{
	struct offered_socket offered;

	(void)state;
#define REFUSED(change, why)                                   \
	do {                                                   \
		offered = good(V4);                            \
		change;                                        \
		assert_string_equal(fault(&offered, V4), why); \
	} while (0)
	REFUSED(offered.domain = AF_INET6, "is no TCP socket of IPv4");
	REFUSED(offered.domain = AF_UNIX, "is no TCP socket of IPv4");
	REFUSED(offered.type = SOCK_DGRAM, "is no TCP socket of IPv4");
	REFUSED(offered.protocol = IPPROTO_MPTCP, "is no TCP socket of IPv4");
	REFUSED(offered.local = address("169.254.169.254:81"), "is not bound to " V4);
	REFUSED(offered.local = address("0.0.0.0:80"), "is not bound to " V4);
	REFUSED(offered.local = address("127.0.0.1:80"), "is not bound to " V4);
	REFUSED(offered.local = address(V6), "is not bound to " V4);
	REFUSED(memset(&offered.local, 0, sizeof(offered.local)), "is not bound to " V4);
	REFUSED(offered.device[0] = '\0', "is not bound to the device lo");
	REFUSED(offered.device[2] = '0', "is not bound to the device lo");
	REFUSED(offered.interface = 0, "is not bound to the device lo");
	REFUSED(offered.interface = 2, "is not bound to the device lo");
	REFUSED(offered.shares_port = true, "shares its port (SO_REUSEPORT)");
	REFUSED(offered.is_listening = false, "does not listen");
	REFUSED(offered.netns = NETNS + 1, "is of another network namespace than its sender");
#undef REFUSED
	offered = good(V6);
	assert_string_equal(fault(&offered, V4), "is no TCP socket of IPv4");
	offered = good(V4);
	assert_string_equal(fault(&offered, V6), "is no TCP socket of IPv6");
}

static void what_the_kernel_says_is_read(void **state)
{
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const struct address loopback = address("127.0.0.1:0");
	struct offered_socket read;
	struct err err;
	uint64_t netns;

	(void)state;
	if (fd < 0) {
		fail_msg("no socket");
		return;
	}
	assert_int_equal(bind(fd, &loopback.any, loopback.len), 0);
	assert_int_equal(offered_socket_read(fd, &read, &err), 0);
	assert_int_equal(read.domain, AF_INET);
	assert_int_equal(read.type, SOCK_STREAM);
	assert_int_equal(read.protocol, IPPROTO_TCP);
	assert_false(read.is_listening);
	assert_false(read.shares_port);
	assert_true(address_same_ip(&read.local, &loopback));
	assert_string_equal(read.device, "");
	assert_int_equal(read.interface, 0);
	assert_int_equal(socket_netns(fd, &netns), 0);
	assert_true(read.netns == netns);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(offered_socket_read(fd, &read, &err), 0);
	assert_true(read.is_listening);
	close(fd);
}

static void what_is_no_socket_is_said(void **state)
{
	struct offered_socket read;
	struct err err;

	(void)state;
	assert_int_equal(offered_socket_read(STDIN_FILENO, &read, &err), -1);
	assert_string_equal(err.text, "is no socket");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_socket_of_a_door_is_taken),
		cmocka_unit_test(each_fault_is_named),
		cmocka_unit_test(what_the_kernel_says_is_read),
		cmocka_unit_test(what_is_no_socket_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
