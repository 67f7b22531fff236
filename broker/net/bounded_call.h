/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls on what another process has a hand in, which it could have wait: accept(2) on a socket
 * whose flags it changes, close(2) of a socket that it has linger. Between begin and end a signal
 * interrupts them, again and again: the first could come before the call that it is to end.
 */
#pragma once

/* How long such a call can be held up. */
#define BOUNDED_CALL_MS 10

/* Once, before the first: takes SIGALRM, which is to be nobody else's. */
void bounded_call_prepare(void);

void bounded_call_begin(void);
/* Leaves errno alone. */
void bounded_call_end(void);

/* Closes a descriptor that came from elsewhere, or a socket in which such may wait. */
void bounded_close(int fd);
