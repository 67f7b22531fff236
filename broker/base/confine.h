/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process that holds secrets does first, whichever program it is.
 */
#pragma once

/*
 * No core dump, and no debugger of another process: what is in memory stays there. Ends with the next
 * execve(). A build with AddressSanitizer stays open: its leak check attaches to its own process.
 */
void confine_memory(void);

/* The three standard descriptors are open: no socket or file of ours becomes the log or a child's output. */
void confine_descriptors(void);
