/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Requirement 9: inside a protected section nothing is interrupted; the violation comes at its end.
 */
#include <onbeat/within.h>

#include "check.h"

int main(void)
{
	volatile int completed = 0;
	volatile int after = 0;
	volatile int violations = 0;
	volatile int whole = 0;

	/* Protected from before the block on, lest the limit pass before its first statement. */
	onbeat_within_disable();
	onbeat_try_within_rel (ONBEAT_MS(2)) {
		onbeat_within_disable();
		compute_ns(ONBEAT_MS(20));
		onbeat_within_enable();
		completed++;
		onbeat_within_enable();
		after++;
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			violations++;
			check(onbeat_delay() >= ONBEAT_MS(18));
		}
	onbeat_end;
	onbeat_within_enable();
	check(completed == 1 && after == 0 && violations == 1);

	/* A whole block inside a protected section: its own violation is thrown where it ends. */
	onbeat_within_disable();
	onbeat_try_within_rel (ONBEAT_MS(2)) {
		compute_ns(ONBEAT_MS(20));
		whole++;
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			violations++;
		}
	onbeat_end;
	onbeat_within_enable();
	check(whole == 1 && violations == 2);

	/* A section that a throw left is over. */
	onbeat_try {
		onbeat_within_disable();
		onbeat_throw(onbeat_exception);
	}
	onbeat_handle
		onbeat_when (onbeat_exception) {
		}
	onbeat_end;
	onbeat_try_within_rel (ONBEAT_MS(2)) {
		compute_for_ever();
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			violations++;
		}
	onbeat_end;
	check(violations == 3);
	return 0;
}
