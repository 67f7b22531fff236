/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Application Default Credentials: where Google's tools look for a credential (AIP-4110). The metadata
 * server at the end counts only where the configuration says so.
 */
#include "broker/credential/credential_impl.h"

#include "broker/base/alloc.h"
#include "broker/base/err.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_NAME "application_default_credentials.json"

/* As Go's and Node's libraries: a variable set to nothing is not set. */
static bool is_set(const char *value)
{
	return value && *value;
}

char *adc_well_known_path(const struct credential_options *options)
{
	if (is_set(options->env_cloudsdk_config))
		return xasprintf("%s/" FILE_NAME, options->env_cloudsdk_config);
	if (is_set(options->env_home))
		return xasprintf("%s/.config/gcloud/" FILE_NAME, options->env_home);
	return NULL;
}

static bool is_missing(const char *path)
{
	struct stat st;

	/* What is there and cannot be used is an error of its own. */
	return stat(path, &st) && (errno == ENOENT || errno == ENOTDIR);
}

char *credential_file_login(const struct credential_file *file, const char *account)
{
	const char *const config = file->options->env_cloudsdk_config;
	AUTO_FREE char *place = adc_well_known_path(file->options);
	const bool is_gclouds = place && !strcmp(place, file->path);
	AUTO_FREE char *command = xasprintf("gcloud auth application-default login%s%s",
					    account ? " --impersonate-service-account=" : "",
					    account ? account : "");

	if (!is_gclouds)
		return xasprintf("log in again with: %s, then copy the file that it writes to %s",
				 command, file->path);
	return xasprintf("log in again with: %s%s%s%s", is_set(config) ? "CLOUDSDK_CONFIG=" : "",
			 is_set(config) ? config : "", is_set(config) ? " " : "", command);
}

int adc_open(const struct credential_options *options, struct credential **out, struct err *err)
{
	const char *const named = options->env_credentials_file;

	if (is_set(named)) {
		if (!credential_file_open(named, options, out, err))
			return 0;
		return err_prefix(err, "GOOGLE_APPLICATION_CREDENTIALS");
	}
	AUTO_FREE char *path = adc_well_known_path(options);
	if ((!path || is_missing(path)) && options->adc_metadata)
		return metadata_open(options, out, err);
	if (!path)
		return err_set(
			err, ERR_INVALID,
			"no Application Default Credentials: none of "
			"GOOGLE_APPLICATION_CREDENTIALS, CLOUDSDK_CONFIG and HOME is set: set "
			"one, or name a file under [source]");
	if (is_missing(path))
		return err_set(
			err, ERR_INVALID,
			"no Application Default Credentials: GOOGLE_APPLICATION_CREDENTIALS is "
			"not set and there is no %s: write it with: gcloud auth "
			"application-default login",
			path);
	return credential_file_open(path, options, out, err);
}
