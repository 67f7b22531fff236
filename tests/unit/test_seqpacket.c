/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/net/seqpacket.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#define MANY 5

static int pair[2];

static int make_pair(void **state)
{
	(void)state;
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
}

static int close_pair(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++)
		if (pair[i] >= 0)
			close(pair[i]);
	return 0;
}

/* The other side sends bytes, and copies of its own descriptor. */
static void send_message(size_t len, size_t fd_count)
{
	static char bytes[4096];
	union {
		char room[CMSG_SPACE(MANY * sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec iov = {bytes, len};
	struct msghdr header = {.msg_iov = &iov, .msg_iovlen = 1};

	memset(bytes, 'x', sizeof(bytes));
	if (fd_count) {
		header.msg_control = control.room;
		header.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		struct cmsghdr *const c = CMSG_FIRSTHDR(&header);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		for (size_t i = 0; i < fd_count; i++)
			memcpy(CMSG_DATA(c) + i * sizeof(int), &pair[1], sizeof(int));
	}
	assert_int_equal(sendmsg(pair[1], &header, 0), len);
}

/* The lowest descriptor that is free: what is left open makes it higher. */
static int lowest_free(void)
{
	const int fd = dup(pair[0]);

	close(fd);
	return fd;
}

static void a_message_comes_whole_or_is_cut(void **state)
{
	static const struct {
		size_t len;
		bool cut;
	} cases[] = {{1, false},
		     {SEQPACKET_MAX_BYTES, false},
		     {SEQPACKET_MAX_BYTES + 1, true},
		     {4096, true}};
	struct seqpacket_message message = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		send_message(cases[i].len, 0);
		assert_int_equal(seqpacket_receive(pair[0], false, &message), SEQPACKET_MESSAGE);
		assert_int_equal(message.cut, cases[i].cut);
		assert_int_equal(message.len, cases[i].cut ? SEQPACKET_MAX_BYTES : cases[i].len);
		assert_int_equal(strlen(message.text), message.len);
	}
}

static void nothing_waits_and_the_end_is_seen(void **state)
{
	struct seqpacket_message message = {0};

	(void)state;
	assert_int_equal(seqpacket_receive(pair[0], false, &message), SEQPACKET_NOTHING);
	send_message(0, 0);
	assert_int_equal(seqpacket_receive(pair[0], false, &message), SEQPACKET_END);
	close(pair[1]);
	pair[1] = -1;
	assert_int_equal(seqpacket_receive(pair[0], false, &message), SEQPACKET_END);
	assert_int_equal(seqpacket_send(pair[0], "end"), -1);
}

static void as_many_descriptors_as_there_is_room_for_come(void **state)
{
	struct seqpacket_message message = {0};
	const int before = lowest_free();

	(void)state;
	for (size_t count = 0; count <= MANY; count++) {
		send_message(1, count);
		assert_int_equal(seqpacket_receive(pair[0], true, &message), SEQPACKET_MESSAGE);
		assert_int_equal(message.cut, count > SEQPACKET_MAX_DESCRIPTORS);
		assert_int_equal(message.fd_count, count > SEQPACKET_MAX_DESCRIPTORS ?
							   SEQPACKET_MAX_DESCRIPTORS :
							   count);
		for (size_t i = 0; i < message.fd_count; i++)
			assert_int_equal(fcntl(message.fds[i], F_GETFD), FD_CLOEXEC);
		seqpacket_message_deinit(&message);
		assert_int_equal(lowest_free(), before);
	}
}

static void without_room_no_descriptor_comes(void **state)
{
	struct seqpacket_message message = {0};
	const int before = lowest_free();

	(void)state;
	send_message(1, MANY);
	assert_int_equal(seqpacket_receive(pair[0], false, &message), SEQPACKET_MESSAGE);
	assert_true(message.cut);
	assert_int_equal(message.fd_count, 0);
	assert_int_equal(lowest_free(), before);
}

static void descriptors_of_an_empty_message_are_not_left_open(void **state)
{
	struct seqpacket_message message = {0};
	const int before = lowest_free();

	(void)state;
	send_message(0, 1);
	assert_int_equal(seqpacket_receive(pair[0], true, &message), SEQPACKET_END);
	seqpacket_message_deinit(&message);
	assert_int_equal(lowest_free(), before);
}

static void who_does_not_read_is_not_waited_for(void **state)
{
	int sent = 0;

	(void)state;
	while (sent < 1 << 20 && !seqpacket_send(pair[0], "end"))
		sent++;
	assert_in_range(sent, 1, (1 << 20) - 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_pair, close_pair)
	const struct CMUnitTest tests[] = {
		TEST(a_message_comes_whole_or_is_cut),
		TEST(nothing_waits_and_the_end_is_seen),
		TEST(as_many_descriptors_as_there_is_room_for_come),
		TEST(without_room_no_descriptor_comes),
		TEST(descriptors_of_an_empty_message_are_not_left_open),
		TEST(who_does_not_read_is_not_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
