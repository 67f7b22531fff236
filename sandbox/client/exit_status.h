/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exit statuses of postern. Of `run` otherwise the command's own, 128+n where signal n ended it.
 */
#pragma once

enum status {
	STATUS_OK = 0,
	STATUS_FAILED = 1,  /* the system refused something that is nobody's choice */
	STATUS_USAGE = 2,   /* the command line */
	STATUS_REFUSED = 3, /* policy or configuration */
	STATUS_BROKER = 4,  /* broker unreachable or gone */
	STATUS_CHECK = 5,   /* a check failed: preflight, firewall */
	STATUS_TIMEOUT = 124,
	STATUS_ENGINE = 125, /* the engine failed before the command ran */
	STATUS_NOT_EXECUTABLE = 126,
	STATUS_NOT_FOUND = 127,
};
