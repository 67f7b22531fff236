/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce_kubeconfig FILE CREDS_DIR [admin]: what `postern run --kubeconfig FILE` writes, on standard
 * output, with the host called host.docker.internal; warnings and errors on standard error.
 */
#include "broker/base/clock.h"
#include "broker/base/err.h"
#include "broker/base/json.h"
#include "broker/base/secret.h"
#include "sandbox/kubeconfig/kubeconfig.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	struct kubeconfig *out = NULL;
	struct err err = {0};

	if (argc < 3)
		return 2;
	json_clear_on_free();
	const struct kubeconfig_options options = {
		.loopback_host = "host.docker.internal",
		.creds_dir = argv[2],
		.allow_admin = argc > 3 && !strcmp(argv[3], "admin"),
		.clock = clock_system(),
	};
	if (kubeconfig_reduce(argv[1], &options, &out, &err)) {
		(void)fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	AUTO_KUBECONFIG struct kubeconfig *config = out;
	for (size_t i = 0; i < config->warnings.count; i++)
		(void)fprintf(stderr, "%s\n", config->warnings.items[i]);
	return fputs(secret_bytes(config->json), stdout) < 0;
}
