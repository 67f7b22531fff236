/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two identities, and for each what the contract's route table says, as bytes. Nothing here is computed
 * by the code under test.
 */
#pragma once

#include "emulator/emulator.h"

/* Where vector files are, seen from the directory the tests run in. */
#ifndef VECTORS_DIR
#define VECTORS_DIR "tests/vectors"
#endif

#define FIXTURE_LOCAL_IP "172.17.0.1"
#define FIXTURE_HOST "172.17.0.1:8174"

struct expected_route {
	const char *path; /* as the contract writes it: "{acct}", a directory with its slash */
	enum emulator_route route;
	const char *text; /* NULL: a token */
	const char *json; /* of a directory with recursive=true, of a leaf with alt=json */
};

struct profile {
	const struct emulator_identity *identity;
	const struct expected_route *routes;
	size_t route_count;
};

enum {
	PROFILE_NUMBERED, /* with a project number and an advertised host */
	PROFILE_PLAIN,	  /* with neither */
	PROFILE_COUNT,
};

extern const struct profile profiles[PROFILE_COUNT];

/* One spelling of a path: with each account name, and a directory with and without its slash. */
struct spelling {
	char path[160];
	const struct expected_route *expected;
};

#define SPELLINGS_MAX 64

/* Fills `out` with every spelling of every path of the profile and returns their number. */
size_t fixture_spellings(const struct profile *profile, struct spelling out[static SPELLINGS_MAX]);

bool expected_is_directory(const struct expected_route *expected);

/* A header of two strings. */
struct emulator_header fixture_header(const char *name, const char *value);

/* A request that every guard lets pass. The target is borrowed. */
struct emulator_request fixture_request(const char *method, const char *target, size_t target_len);

/* Fails the test, with `what` in its message, unless the reply is this refusal, byte for byte. */
void expect_refusal(const struct emulator_reply *reply, enum emulator_refusal refusal,
		    const char *what);

/* The same for a 200. */
void expect_content(const struct emulator_reply *reply, enum emulator_route route, const char *type,
		    const char *body, const char *what);
