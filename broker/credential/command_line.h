/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command as a credential file writes it: words between blanks, as Google's libraries split it. No
 * shell ever sees it.
 */
#pragma once

#include "broker/base/compiler.h"

struct strv;

/*
 * Splits into a zeroed list; double quotes keep blanks within a word, and go. -1 where there is no word,
 * or a quote is open.
 */
NODISCARD int command_line_split(struct strv *argv, const char *command);
