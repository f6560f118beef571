/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Missed deadline notification: "I was too late just now".
 *
 * After S. A. Banachowski, J. Wu and S. A. Brandt: a system call without argument or result,
 * advisory. The kernel names the calling thread.
 */
#ifndef ONBEAT_MDN_H
#define ONBEAT_MDN_H

#include <onbeat/mark.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Says that this thread has just missed a deadline. */
ONBEAT_MARKS void onbeat_mdn(void)
{
	onbeat_mark_(onbeat_missed_, 0, 0);
}

#ifdef ONBEAT_SHORT_NAMES
#define mdn onbeat_mdn
#endif

#ifdef __cplusplus
}
#endif

#endif
