/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process that holds secrets does first, whichever program it is.
 */
#pragma once

struct rlimit;

/*
 * No core dump, and no debugger of another process: what is in memory stays there. The next execve() ends that
 * but for the limit of core dumps, which children have too. core_before gets that limit as it was, which can be
 * set again for a program that is to find it so; with NULL it is 0 for good. A build with AddressSanitizer stays
 * open: its leak check attaches to its own process.
 */
void confine_memory(struct rlimit *core_before);

/* The three standard descriptors are open: no socket or file of ours becomes the log or a child's output. */
void confine_descriptors(void);
