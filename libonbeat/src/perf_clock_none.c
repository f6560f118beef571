/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The portable form knows no perf: execution time is left to the CPU-time timer. */
#include "within.h"

int onbeat_perf_clock_open_(void)
{
	return -1;
}

void onbeat_perf_clock_set_(int fd, int64_t expires_ns)
{
	(void)fd;
	(void)expires_ns;
}
