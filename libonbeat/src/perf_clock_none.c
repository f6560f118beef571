/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The portable form knows no perf: execution time is left to the CPU-time timer. */
#include "within.h"

bool onbeat_perf_clock_open_(struct onbeat_perf_clock *clock)
{
	(void)clock;
	return false;
}

bool onbeat_perf_clock_set_(const struct onbeat_perf_clock *clock, int64_t expires_ns)
{
	(void)clock;
	(void)expires_ns;
	return false;
}

void onbeat_perf_clock_close_(const struct onbeat_perf_clock *clock)
{
	(void)clock;
}
