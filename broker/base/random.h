/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random numbers of the kernel.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* A number in [0, bound); bound > 0. The bias of the remainder is below 2^-32 for bounds of 32 bits. */
uint32_t random_below(uint32_t bound);

/* Lower-case hex digits and a NUL: `size` is the room, so `size - 1` digits. */
void random_hex(char *out, size_t size);
