/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the door gives up once its set-up is done.
 */
#pragma once

/*
 * No new privileges, no dump, no capability (read back), and a filter that leaves only the system calls with
 * which the door waits, reconnects and ends. Ends the process on failure.
 */
void confine(void);
