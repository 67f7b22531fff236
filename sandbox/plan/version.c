/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/plan/version.h"

#include <stdlib.h>

bool version_is_at_least(const char *version, unsigned long major, unsigned long minor)
{
	char *end = NULL;

	if (!version || *version < '0' || *version > '9')
		return true;
	const unsigned long its_major = strtoul(version, &end, 10);
	const unsigned long its_minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
	return its_major > major || (its_major == major && its_minor >= minor);
}
