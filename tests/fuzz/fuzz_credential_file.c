/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A credential file of any type, opened as the broker opens it: whatever is in it, a source of a kind that
 * is known, or one line of error with the file's name. Nobody is called, and nothing is run.
 */
#include "broker/base/alloc.h"
#include "broker/base/clock.h"
#include "broker/base/compiler.h"
#include "broker/base/err.h"
#include "broker/base/strv.h"
#include "broker/base/timer.h"
#include "broker/credential/credential.h"
#include "tests/fuzz/no_http.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static int64_t stopped(const struct clock *clock)
{
	(void)clock;
	return 0;
}

static void check_credential(const struct credential *credential, const char *path)
{
	static const char *const types[] = {"authorized_user", "service_account",
					    "external_account", "impersonated_service_account"};
	struct credential_info info;
	bool known = false;

	credential_info(credential, &info);
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		known = known || !strcmp(info.type, types[i]);
	check(known && !strcmp(info.path, path) && !info.token_expires_wall_ms);
	check(!strpbrk(info.principal, "/?#: \r\n"));
	check(credential_repair(credential) && *credential_repair(credential));
	check(credential_equal(credential, credential) && !credential_is_busy(credential));
}

static void open_file(const char *path)
{
	static const struct clock clock = {.boot_ms = stopped, .wall_ms = stopped};
	static const char *const environment[] = {NULL};
	struct credential *credential = NULL;
	struct timer_queue timers;
	struct strv hosts = {0};
	struct err err = {0};

	timer_queue_init(&timers, &clock);
	const struct credential_options options = {
		.type = "file",
		.file = path,
		.subject_token_hosts = &hosts,
		.env_executables = "1",
		.environment = environment,
		.universe_domain = "googleapis.com",
		.oauth2_endpoint = "https://oauth2.googleapis.com",
		.sts_endpoint = "https://sts.googleapis.com",
		.iamcredentials_endpoint = "https://iamcredentials.googleapis.com",
		.timers = &timers,
	};
	if (credential_open(&options, &credential, &err)) {
		check(!credential && err.code != ERR_NONE && !strchr(err.text, '\n'));
		check(!strncmp(err.text, path, strlen(path)));
		return;
	}
	check_credential(credential, path);
	credential_free(credential);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[64];
	const int fd = memfd_create("credential", MFD_CLOEXEC);

	check(fd >= 0 && !fchmod(fd, 0600));
	check(write(fd, data, size) == (ssize_t)size);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	open_file(path);
	check(!close(fd));
	return 0;
}
