/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Missed deadline notification: "I was too late just now".
 *
 * After S. A. Banachowski, J. Wu and S. A. Brandt: no argument, no result, advisory. It is a static
 * probe (USDT) in the caller's own code: instructions that do nothing without a listener; the
 * kernel names the calling thread, so no thread can notify in another's name.
 */
#ifndef ONBEAT_MDN_H
#define ONBEAT_MDN_H

#include <onbeat/probe.h>

#pragma push_macro("_SDT_NOP")
#undef _SDT_NOP
#define _SDT_NOP ONBEAT_PROBE_NOP

#ifdef __cplusplus
extern "C" {
#endif

/* Tells listeners that this thread has just missed a deadline. */
ONBEAT_PROBE void onbeat_mdn(void)
{
	DTRACE_PROBE(onbeat, mdn);
}

#ifdef ONBEAT_SHORT_NAMES
#define mdn onbeat_mdn
#endif

#ifdef __cplusplus
}
#endif

#pragma pop_macro("_SDT_NOP")

#endif
