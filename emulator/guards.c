/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/guards.h"

#include "emulator/host.h"

#include <string.h>
#include <strings.h>

/* Counts the headers of that name (RFC 9110 section 5.1: in any case) and gives the last one. */
static size_t count_headers(const struct emulator_request *request, const char *name,
			    const struct emulator_header **last)
{
	const size_t name_len = strlen(name);
	size_t count = 0;

	for (size_t i = 0; i < request->header_count; i++) {
		const struct emulator_header *const header = &request->headers[i];
		if (header->name_len != name_len || strncasecmp(header->name, name, name_len) != 0)
			continue;
		*last = header;
		count++;
	}
	return count;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* The value without the blanks around it (RFC 9110 section 5.6.3). */
static const char *trimmed_value(const struct emulator_header *header, size_t *len)
{
	const char *value = header->value;

	*len = header->value_len;
	while (*len && is_blank(*value)) {
		value++;
		--*len;
	}
	while (*len && is_blank(value[*len - 1]))
		--*len;
	return value;
}

static bool has_own_host(const struct emulator_request *request, const char *advertised_host)
{
	const struct emulator_header *header;
	size_t len;

	if (count_headers(request, "Host", &header) != 1)
		return false;
	const char *const host = trimmed_value(header, &len);
	return host_names_endpoint(host, len, advertised_host, request->local_ip);
}

/* What neither a page in a browser nor a redirect can add to a request. */
static bool has_flavor(const struct emulator_request *request)
{
	static const char google[] = "Google";
	const struct emulator_header *header;
	size_t len;

	if (count_headers(request, "Metadata-Flavor", &header) != 1)
		return false;
	const char *const flavor = trimmed_value(header, &len);
	return len == sizeof(google) - 1 && !memcmp(flavor, google, len);
}

/* Its presence alone tells of a proxy in between; so did the real server judge (k8s-metadata-proxy). */
static bool is_forwarded(const struct emulator_request *request)
{
	const struct emulator_header *header;

	return count_headers(request, "X-Forwarded-For", &header) > 0;
}

enum emulator_refusal guards_check(const struct emulator_request *request,
				   const char *advertised_host)
{
	if (request->malformed)
		return EMULATOR_REFUSAL_MALFORMED;
	if (request->has_body)
		return EMULATOR_REFUSAL_BODY;
	if (request->peer_refused)
		return EMULATOR_REFUSAL_PEER;
	if (is_forwarded(request))
		return EMULATOR_REFUSAL_FORWARDED;
	if (!has_own_host(request, advertised_host))
		return EMULATOR_REFUSAL_HOST;
	if (!has_flavor(request))
		return EMULATOR_REFUSAL_FLAVOR;
	return EMULATOR_REFUSAL_NONE;
}
