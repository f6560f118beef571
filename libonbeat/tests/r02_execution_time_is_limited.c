/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Requirement 2: a constraint on execution time; sleeping does not count. */
#include <onbeat/within.h>

#include <unistd.h>

#include "check.h"

int main(void)
{
	volatile int violations = 0;
	volatile int slept = 0;
	volatile int64_t used_ns = read_clock(CLOCK_THREAD_CPUTIME_ID);

	onbeat_try_within_wcet (ONBEAT_MS(20)) {
		compute_for_ever();
	}
	onbeat_handle
		onbeat_when (onbeat_wcet_violation) {
			violations++;
		}
	onbeat_end;
	check(violations == 1);
	check(read_clock(CLOCK_THREAD_CPUTIME_ID) - used_ns >= ONBEAT_MS(20));

	used_ns = read_clock(CLOCK_THREAD_CPUTIME_ID);
	onbeat_try_within_wcet (ONBEAT_MS(50)) {
		usleep(100000);
		slept = 1;
	}
	onbeat_handle
		onbeat_when (onbeat_wcet_violation) {
			/*
			 * Right only where a hypervisor stopped the machine and that counts as
			 * execution.
			 */
			slept = read_clock(CLOCK_THREAD_CPUTIME_ID) - used_ns >= ONBEAT_MS(50);
		}
	onbeat_end;
	check(slept == 1);
	return 0;
}
