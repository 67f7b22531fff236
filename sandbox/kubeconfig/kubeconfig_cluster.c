/* SPDX-License-Identifier: Apache-2.0 */
/* The values of context and cluster. */
#include "broker/base/alloc.h"
#include "broker/base/err.h"
#include "broker/base/parse.h"
#include "broker/net/address.h"
#include "sandbox/kubeconfig/kubeconfig_impl.h"
#include "sandbox/kubeconfig/kubeconfig_yaml.h"

#include <string.h>

#define NAMESPACE_MAX_BYTES 63

static int read_flag(const struct kubeconfig_reading *reading, const struct yaml_value *value,
		     bool *out)
{
	if (!value)
		return 0;
	*out = !strcmp(value->text, "true");
	if (value->plain && (*out || !strcmp(value->text, "false")))
		return 0;
	return kubeconfig_refuse(reading, KUBECONFIG_CLUSTER, value->line,
				 "has a flag that is neither true nor false; write one of them");
}

static int check_namespace(const struct kubeconfig_reading *reading)
{
	const struct yaml_value *const value = reading->written.namespace;

	/* RFC 1123, as Kubernetes has it: one label. */
	if (!value || (strlen(value->text) <= NAMESPACE_MAX_BYTES &&
		       text_is_host_name(value->text) && !strchr(value->text, '.')))
		return 0;
	return kubeconfig_refuse(reading, KUBECONFIG_CONTEXT, value->line,
				 "has a namespace that is no name of at most 63 letters, digits "
				 "and \"-\"; mend it");
}

static int read_tls_server_name(struct kubeconfig_reading *reading)
{
	const struct yaml_value *const value = reading->written.tls_server_name;
	struct address address;

	if (!value)
		return 0;
	if (!text_is_host_name(value->text) && address_parse_ip(&address, value->text))
		return kubeconfig_refuse(reading, KUBECONFIG_CLUSTER, value->line,
					 "has a tls-server-name that is no host name; mend it");
	reading->tls_server_name = xstrdup(value->text);
	return 0;
}

static int read_insecure(struct kubeconfig_reading *reading)
{
	const struct kubeconfig_written *const written = &reading->written;

	if (read_flag(reading, written->insecure, &reading->insecure))
		return -1;
	if (!reading->insecure)
		return 0;
	if (written->ca || written->ca_data)
		return kubeconfig_refuse(reading, KUBECONFIG_CLUSTER, written->insecure->line,
					 "has insecure-skip-tls-verify beside a CA, which clients "
					 "refuse; delete it");
	kubeconfig_warn(reading, KUBECONFIG_CLUSTER,
			"is not verified (insecure-skip-tls-verify): whoever answers in its place "
			"gets the token");
	return 0;
}

int kubeconfig_read_cluster(struct kubeconfig_reading *reading)
{
	if (check_namespace(reading) || read_tls_server_name(reading) ||
	    read_flag(reading, reading->written.disable_compression,
		      &reading->disable_compression) ||
	    read_insecure(reading) || kubeconfig_read_server(reading))
		return -1;
	return kubeconfig_embed_ca(reading);
}
