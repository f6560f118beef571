/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Requirement 3: recovery for a generic violation, or for a deadline or execution time alone. */
#include <onbeat/within.h>

#include "check.h"

int main(void)
{
	volatile int generic = 0;
	volatile int wrong = 0;
	volatile int outer = 0;

	onbeat_try_within_rel (ONBEAT_MS(2)) {
		compute_for_ever();
	}
	onbeat_handle
		onbeat_when (onbeat_timing_constraint_violation) {
			generic++;
			check(onbeat_caught()->type == &onbeat_deadline_violation);
		}
	onbeat_end;

	onbeat_try_within_wcet (ONBEAT_MS(2)) {
		compute_for_ever();
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			wrong++;
		}
		onbeat_when (onbeat_timing_constraint_violation) {
			generic++;
			check(onbeat_caught()->type == &onbeat_wcet_violation);
		}
	onbeat_end;

	onbeat_try {
		onbeat_try_within_rel (ONBEAT_MS(2)) {
			compute_for_ever();
		}
		onbeat_handle
			onbeat_when (onbeat_wcet_violation) {
				wrong++;
			}
		onbeat_end;
		wrong++;
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			outer++;
		}
	onbeat_end;

	check(generic == 2);
	check(outer == 1);
	check(wrong == 0);
	return 0;
}
