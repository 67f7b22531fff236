/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens and ends sessions through the control socket, one after the other on one connection, and says
 * how long each half took and both together: one JSON object on standard output.
 */
#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/base/compiler.h"
#include "broker/base/parse.h"
#include "tests/bench/answer.h"
#include "tests/bench/dial.h"
#include "tests/bench/samples.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REQUEST_MAX_BYTES ((size_t)4096)
/* Hexadecimal digits of a session's id. */
#define ID_LEN 16

/* Sends a request and reads its answer into `answer`, which ends with a NUL. */
static int exchange(int fd, const struct buf *request, char answer[static ANSWER_MAX_BYTES + 1],
		    unsigned status)
{
	size_t len = 0;

	if (write(fd, request->data, request->len) != (ssize_t)request->len)
		return -1;
	do {
		const ssize_t got = read(fd, &answer[len], ANSWER_MAX_BYTES - len);
		if (got <= 0) {
			errno = got ? errno : EPIPE;
			return -1;
		}
		len += (size_t)got;
	} while (!answer_length(answer, len));
	answer[len] = '\0';
	if (answer_status(answer, len) == status)
		return 0;
	errno = EPROTO;
	return -1;
}

static void write_open(struct buf *request, const char *wish)
{
	buf_addf(request,
		 "POST /v1/sessions HTTP/1.1\r\nHost: postern\r\n"
		 "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
		 strlen(wish), wish);
}

static int write_end(struct buf *request, const char *opened)
{
	static const char name[] = "\"id\":\"";
	const char *const id = strstr(opened, name);

	if (!id || strlen(id) < sizeof(name) + ID_LEN) {
		errno = EPROTO;
		return -1;
	}
	buf_addf(request, "DELETE /v1/sessions/%.*s HTTP/1.1\r\nHost: postern\r\n\r\n", ID_LEN,
		 id + sizeof(name) - 1);
	return 0;
}

struct churn {
	int fd;
	struct buf open; /* the request */
	struct samples opened, ended, both;
};

static int once(struct churn *churn)
{
	char answer[ANSWER_MAX_BYTES + 1];
	AUTO_BUF struct buf end;
	const int64_t begun_ns = samples_now_ns();

	buf_init(&end, REQUEST_MAX_BYTES);
	if (exchange(churn->fd, &churn->open, answer, 201))
		return -1;
	const int64_t open_ns = samples_add(&churn->opened, begun_ns);
	if (write_end(&end, answer) || exchange(churn->fd, &end, answer, 204))
		return -1;
	(void)samples_add(&churn->ended, open_ns);
	(void)samples_add(&churn->both, begun_ns);
	return 0;
}

static void report(struct churn *churn)
{
	printf("{");
	samples_print(&churn->opened, "open_");
	samples_print(&churn->ended, "end_");
	samples_print(&churn->both, "");
	printf("\"sessions\":%zu}\n", churn->both.count);
}

static int run(struct churn *churn, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		if (once(churn))
			return -1;
	report(churn);
	return 0;
}

int main(int argc, char **argv)
{
	struct churn churn = {.fd = -1};
	struct dial dial;
	uint64_t count;
	int status = EXIT_SUCCESS;

	if (argc != 4 || dial_init(&dial, argv[1]) || parse_uint(argv[2], 1, INT32_MAX, &count)) {
		(void)fputs("usage: churn CONTROL_SOCKET COUNT WISH\n", stderr);
		return 2;
	}
	buf_init(&churn.open, REQUEST_MAX_BYTES);
	write_open(&churn.open, argv[3]);
	churn.fd = dial_wait(&dial);
	if (churn.fd < 0 || run(&churn, count)) {
		perror("churn");
		status = EXIT_FAILURE;
	}
	samples_deinit(&churn.opened);
	samples_deinit(&churn.ended);
	samples_deinit(&churn.both);
	buf_deinit(&churn.open);
	if (churn.fd >= 0)
		close(churn.fd);
	return status;
}
