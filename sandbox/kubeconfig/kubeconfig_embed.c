/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates and keys: from a file or from base64, checked to be nothing else, to be embedded. */
#include "broker/base/alloc.h"
#include "broker/base/err.h"
#include "sandbox/kubeconfig/base64.h"
#include "sandbox/kubeconfig/kubeconfig_impl.h"
#include "sandbox/kubeconfig/kubeconfig_yaml.h"
#include "sandbox/kubeconfig/pem.h"
#include "sandbox/kubeconfig/plain_file.h"

#include <string.h>

/* One that may cross: where it may stand, what it is and what a refusal calls it. */
struct embedded {
	enum kubeconfig_kind owner;
	enum pem_kind kind;
	const struct yaml_value *data; /* wins over the file, as in clients */
	const struct yaml_value *file;
	const char *called;
	const char *repair;
	struct buf *out;
};

static int refuse(const struct kubeconfig_reading *reading, const struct embedded *embedded,
		  unsigned line, const char *form, const char *why)
{
	AUTO_FREE char *message =
		xasprintf("has a %s%s that %s; %s", embedded->called, form, why, embedded->repair);

	return kubeconfig_refuse(reading, embedded->owner, line, message);
}

static int embed(const struct kubeconfig_reading *reading, const struct embedded *embedded)
{
	const struct yaml_value *const data = embedded->data;
	const struct yaml_value *const file = embedded->file;
	const char *why = NULL;

	if (!data && !file)
		return 0;
	const char *const form = data ? "-data" : " file";
	if (data && base64_decode(embedded->out, data->text, strlen(data->text))) {
		why = "is no base64";
	} else if (!data) {
		AUTO_FREE char *path = kubeconfig_resolve(reading, file->text);
		why = plain_file_read(path, true, embedded->out);
	}
	if (!why)
		why = pem_check(embedded->kind, embedded->out->len ? embedded->out->data : "",
				embedded->out->len);
	if (why)
		return refuse(reading, embedded, (data ? data : file)->line, form, why);
	return 0;
}

int kubeconfig_embed_ca(struct kubeconfig_reading *reading)
{
	const struct embedded ca = {
		.owner = KUBECONFIG_CLUSTER,
		.kind = PEM_CERTIFICATES,
		.data = reading->written.ca_data,
		.file = reading->written.ca,
		.called = "certificate-authority",
		.repair = "put the cluster's CA there, in PEM and alone",
		.out = &reading->ca,
	};

	return embed(reading, &ca);
}

int kubeconfig_embed_client(struct kubeconfig_reading *reading)
{
	const struct embedded certificate = {
		.owner = KUBECONFIG_USER,
		.kind = PEM_CERTIFICATES,
		.data = reading->written.certificate_data,
		.file = reading->written.certificate,
		.called = "client-certificate",
		.repair = "put the user's certificate there, in PEM and alone",
		.out = &reading->certificate,
	};
	const struct embedded key = {
		.owner = KUBECONFIG_USER,
		.kind = PEM_PRIVATE_KEY,
		.data = reading->written.key_data,
		.file = reading->written.key,
		.called = "client-key",
		.repair = "put the certificate's key there, in PEM, unencrypted and alone",
		.out = &reading->key,
	};

	if (embed(reading, &certificate) || embed(reading, &key))
		return -1;
	if (!reading->certificate.len == !reading->key.len)
		return 0;
	return kubeconfig_refuse(reading, KUBECONFIG_USER, reading->entries[KUBECONFIG_USER].line,
				 "has a client certificate without its key, or a key without its "
				 "certificate; give both or none");
}
