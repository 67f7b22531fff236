/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file that `gcloud auth application-default login --impersonate-service-account` writes: a
 * credential within, and the account that it mints for.
 */
#include "broker/credential/credential_impl.h"

#include "broker/base/alloc.h"
#include "broker/base/log.h"
#include "broker/base/parse.h"

#include <string.h>

#define VERB ":generateAccessToken"
#define RESOURCE "projects/-/serviceAccounts/"
#define LIFETIME_S 3600

#define LOG_IN                                                             \
	"write the file anew with: gcloud auth application-default login " \
	"--impersonate-service-account=ACCOUNT"

/* What stands between the last slash and the verb. */
static char *account_of(const char *url)
{
	const char *const slash = strrchr(url, '/');
	const char *const verb = slash ? strstr(slash, VERB) : NULL;

	if (!verb || strcmp(verb, VERB) != 0)
		return NULL;
	AUTO_FREE char *name = xstrndup(slash + 1, (size_t)(verb - slash - 1));
	const char *const at = strstr(name, "%40");
	if (!at)
		return TAKE(name);
	return xasprintf("%.*s@%s", (int)(at - name), name, at + strlen("%40"));
}

int impersonation_account(const struct credential_file *file, char **out, struct err *err)
{
	static const char field[] = "service_account_impersonation_url";
	const char *url;
	struct quoted quoted;

	if (credential_file_string(file, field, LOG_IN, &url, err))
		return -1;
	AUTO_FREE char *account = account_of(url);
	if (!account || !text_is_email(account))
		return credential_file_refuse(file, err, field,
					      "is %s, which does not end in " RESOURCE
					      "ACCOUNT" VERB
					      " with the e-mail address of an account: " LOG_IN,
					      quote_str(&quoted, url));
	*out = TAKE(account);
	return 0;
}

/* As plain addresses or as resource names: clients write both. */
static int read_delegates(const struct credential_file *file, struct strv *out, struct err *err)
{
	const json_t *const delegates = json_object_get(file->root, "delegates");
	struct quoted quoted;
	size_t i;
	const json_t *item;

	if (!delegates || json_is_null(delegates))
		return 0;
	if (!json_is_array(delegates))
		return credential_file_refuse(file, err, "delegates", "is no list: " LOG_IN);
	json_array_foreach(delegates, i, item) {
		const char *const name = json_string_value(item);
		const size_t prefix =
			name && !strncmp(name, RESOURCE, strlen(RESOURCE)) ? strlen(RESOURCE) : 0;
		if (!name || !text_is_email(name + prefix))
			return credential_file_refuse(
				file, err, "delegates",
				"holds %s, which is no e-mail address of a service account: " LOG_IN,
				quote_str(&quoted, name));
		strv_add(out, name + prefix, strlen(name + prefix));
	}
	return 0;
}

/* One account in between is what the file says; a second one would be used without being seen. */
static int refuse_second(const struct credential_file *file, struct err *err)
{
	const json_t *const source = json_object_get(file->root, "source_credentials");

	if (!json_object_get(source, "service_account_impersonation_url"))
		return 0;
	return credential_file_refuse(
		file, err, "source_credentials.service_account_impersonation_url",
		"makes a second account in between: remove it, and name that account in delegates");
}

int impersonated_new(const struct credential_file *file, struct credential **out, struct err *err)
{
	AUTO_FREE char *account = NULL;
	AUTO_STRV struct strv delegates = {0};
	struct impersonation impersonation = {
		.delegates = &delegates,
		.lifetime_s = LIFETIME_S,
	};

	if (impersonation_account(file, &account, err) || read_delegates(file, &delegates, err) ||
	    refuse_second(file, err) ||
	    credential_file_open_nested(file, "source_credentials", &impersonation.inner, err))
		return -1;
	impersonation.account = account;
	*out = impersonation_new(&impersonation, file->options);
	(*out)->repair = credential_file_login(file, account);
	return 0;
}
