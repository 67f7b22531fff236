/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file into which the engine writes the id of the container it has made: the evidence that there is
 * one.
 */
#pragma once

#include "broker/base/compiler.h"

/* 64 hex digits and the NUL. */
#define CIDFILE_ID_SIZE 65

/* -1 while it is not there or not whole. */
NODISCARD int cidfile_read(const char *path, char id[static CIDFILE_ID_SIZE]);
