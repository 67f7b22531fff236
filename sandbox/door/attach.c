/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/door/attach.h"

#include "sandbox/door/endpoint.h"
#include "sandbox/door/exit_code.h"
#include "sandbox/door/options.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#define MESSAGE_MAX 256
#define FOREVER (-1)
/* A broker that went away has so long to come back, and one that is there has it to answer. */
#define TRY_MS 100
#define TRIES 100

static bool is_secret(const char *text)
{
	return strspn(text, "0123456789abcdef") == SECRET_LENGTH && !text[SECRET_LENGTH];
}

enum answer answer_read(const char *message, size_t length)
{
	if (strlen(message) != length || length > MESSAGE_MAX)
		return ANSWER_UNKNOWN;
	if (strcmp(message, "go") == 0)
		return ANSWER_GO;
	if (strcmp(message, "end") == 0)
		return ANSWER_END;
	if (strncmp(message, "ok ", ANSWER_REST) == 0 && is_secret(message + ANSWER_REST))
		return ANSWER_OK;
	return strncmp(message, "no ", ANSWER_REST) == 0 ? ANSWER_NO : ANSWER_UNKNOWN;
}

/* Ends on a signal. False: there was nothing to be read in time. */
static bool wait_readable(const struct attach *attach, int timeout_ms)
{
	struct pollfd waits[] = {
		{.fd = attach->signals, .events = POLLIN},
		{.fd = attach->fd, .events = POLLIN},
	};
	int ready;

	do {
		ready = poll(waits, ARRAY_LEN(waits), timeout_ms);
	} while (ready < 0 && errno == EINTR);
	demand(ready >= 0, EXIT_SYSTEM, "the door cannot wait:");
	if (waits[0].revents)
		_exit(EXIT_ENDED);
	return ready > 0;
}

/* Waits for this answer; another ends the door. False: the broker is gone, or silent. */
static bool await(struct attach *attach, enum answer wanted, int timeout_ms)
{
	char message[MESSAGE_MAX + 2] = "";
	enum answer answer;
	ssize_t length;

	if (!wait_readable(attach, timeout_ms))
		return false;
	length = recv(attach->fd, message, sizeof(message) - 1, 0);
	if (length <= 0)
		return false;
	answer = answer_read(message, (size_t)length);
	if (answer == ANSWER_END)
		_exit(EXIT_ENDED);
	if (answer == ANSWER_NO)
		die(EXIT_REFUSED, "the broker refuses:", message + ANSWER_REST);
	if (answer != wanted || answer == ANSWER_UNKNOWN)
		die(EXIT_PROTOCOL, "the broker's answer is none that the door knows;",
		    "are they of one version?");
	if (answer == ANSWER_OK) {
		attach->greeting[0] = 'R';
		memcpy(attach->greeting + 2, message + ANSWER_REST, SECRET_LENGTH);
	}
	return true;
}

static void disconnect(struct attach *attach)
{
	if (attach->fd >= 0)
		close(attach->fd);
	attach->fd = -1;
}

/* The path is relative, for the sandbox sees it in /proc/net/unix. 0 or an errno. */
static int connect_to_broker(struct attach *attach)
{
	const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "sock"};
	int error;

	attach->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (attach->fd >= 0 && connect(attach->fd, (const void *)&address, sizeof(address)) == 0)
		return 0;
	error = errno;
	disconnect(attach);
	return error;
}

static bool greet(struct attach *attach, int timeout_ms)
{
	const size_t length = strlen(attach->greeting);

	return send(attach->fd, attach->greeting, length, MSG_NOSIGNAL) >= 0 &&
	       await(attach, ANSWER_GO, timeout_ms);
}

static void read_ticket(const char *path, char out[static SECRET_LENGTH + 1])
{
	AUTO_CLOSE const int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[SECRET_LENGTH + 3] = "";

	demand(fd >= 0 && read(fd, text, sizeof(text) - 1) >= 0, EXIT_TICKET,
	       "the ticket cannot be read:");
	if (strcmp(text + SECRET_LENGTH, "\n") == 0)
		text[SECRET_LENGTH] = '\0';
	if (!is_secret(text))
		die(EXIT_TICKET, "there is no ticket of 32 hex digits in", path);
	memcpy(out, text, SECRET_LENGTH + 1);
	explicit_bzero(text, sizeof(text));
}

void attach_open(struct attach *attach, const struct door_options *options)
{
	sigset_t ends;
	int error;

	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	*attach = (struct attach){.fd = -1, .greeting = "T "};
	attach->signals = sigprocmask(SIG_BLOCK, &ends, NULL) ? -1 :
								signalfd(-1, &ends, SFD_CLOEXEC);
	demand(attach->signals >= 0, EXIT_SYSTEM, "signals cannot be taken:");
	read_ticket(options->ticket, attach->greeting + 2);
	demand(chdir(options->attach) == 0, EXIT_CONNECT,
	       "the attach directory cannot be entered:");
	error = connect_to_broker(attach);
	/* Its queue is full: many doors at once. */
	for (int i = 0; error == EAGAIN && i < TRIES; i++) {
		(void)wait_readable(attach, TRY_MS);
		error = connect_to_broker(attach);
	}
	errno = error;
	demand(!error, EXIT_CONNECT, "there is no broker at the attach socket:");
	if (!greet(attach, TRIES * TRY_MS))
		die(EXIT_GONE, "the broker did not answer", "the ticket");
}

bool attach_offer(struct attach *attach, const struct endpoint_sockets *sockets)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(sockets->listeners))];
	} control = {0};
	const size_t size = sockets->count * sizeof(sockets->listeners[0]);
	struct iovec data = {.iov_base = "D", .iov_len = 1};
	struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control};

	message.msg_controllen = (socklen_t)CMSG_SPACE(size);
	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	control.head.cmsg_len = (socklen_t)CMSG_LEN(size);
	memcpy(CMSG_DATA(&control.head), sockets->listeners, size);
	return sendmsg(attach->fd, &message, MSG_NOSIGNAL) >= 0 &&
	       await(attach, ANSWER_OK, TRIES * TRY_MS);
}

/* A broker that closes without a word does not know the session yet. */
static bool offer_again(struct attach *attach, const struct endpoint_sockets *sockets)
{
	for (int left = TRIES; left > 0; left--) {
		disconnect(attach);
		(void)wait_readable(attach, TRY_MS);
		if (connect_to_broker(attach) == 0 && greet(attach, left * TRY_MS) &&
		    attach_offer(attach, sockets))
			return true;
	}
	return false;
}

_Noreturn void attach_hold(struct attach *attach, const struct endpoint_sockets *sockets)
{
	do {
		/* Of the answers that are left, both end the door. */
		(void)await(attach, ANSWER_UNKNOWN, FOREVER);
	} while (offer_again(attach, sockets));
	die(EXIT_GONE, "the broker went away and was not back", "within 10 s");
}
