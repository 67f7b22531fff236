/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a door ended, in words: its own line, and what the line does not say.
 */
#pragma once

struct err;

/* What it wrote to standard error and its exit status become an ERR_SYSTEM. */
void door_words(const char *said, int status, struct err *err);
