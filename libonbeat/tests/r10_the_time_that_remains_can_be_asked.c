/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Requirement 10: the time before the violation. */
#include <onbeat/within.h>

#include "check.h"

_Static_assert(ONBEAT_S(2) == ONBEAT_MS(2000) && ONBEAT_MS(3) == ONBEAT_US(3000) && ONBEAT_US(4) == ONBEAT_NS(4000),
	       "times are nanoseconds");

int main(void)
{
	check(onbeat_remaining() == ONBEAT_FOREVER);
	check(onbeat_remaining_wcet() == ONBEAT_FOREVER);
	onbeat_try_within_rel (ONBEAT_S(100)) {
		int64_t first_ns = onbeat_remaining();

		check(first_ns <= ONBEAT_S(100) && first_ns > 0);
		compute_ns(ONBEAT_MS(1));
		check(onbeat_remaining() <= first_ns - ONBEAT_MS(1));
		onbeat_try_within_rel (ONBEAT_S(200)) {
			check(onbeat_remaining() < ONBEAT_S(100));
		}
		onbeat_handle
		onbeat_end;
		onbeat_try_within_wcet (ONBEAT_S(50)) {
			check(onbeat_remaining_wcet() <= ONBEAT_S(50));
			check(onbeat_remaining_wcet() > ONBEAT_S(1));
		}
		onbeat_handle
		onbeat_end;
		check(onbeat_remaining_wcet() == ONBEAT_FOREVER);
	}
	onbeat_handle
	onbeat_end;
	check(onbeat_remaining() == ONBEAT_FOREVER);
	return 0;
}
