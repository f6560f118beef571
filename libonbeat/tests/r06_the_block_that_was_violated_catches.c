/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Requirement 6: with nested constraints, the block whose constraint expired handles it. */
#include <onbeat/within.h>

#include "check.h"

static volatile int inner, outer, finally_inner, finally_outer;

/* Protected until both blocks are entered, so that it is in the inner one that a limit passes. */
static void nested(int64_t outer_ns, int64_t inner_ns)
{
	inner = outer = finally_inner = finally_outer = 0;
	onbeat_within_disable();
	onbeat_try_within_rel (outer_ns) {
		onbeat_try_within_rel (inner_ns) {
			onbeat_within_enable();
			compute_for_ever();
		}
		onbeat_finally {
			finally_inner++;
		}
		onbeat_handle
			onbeat_when (onbeat_deadline_violation) {
				inner++;
			}
		onbeat_end;
	}
	onbeat_finally {
		finally_outer++;
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			outer++;
		}
	onbeat_end;
	onbeat_within_enable();
	check(finally_inner == 1 && finally_outer == 1);
}

int main(void)
{
	volatile int64_t at_ns;
	volatile int wcet = 0;
	volatile int deadline = 0;

	nested(ONBEAT_S(100), ONBEAT_MS(3));
	check(inner == 1 && outer == 0);
	nested(ONBEAT_MS(3), ONBEAT_S(100));
	check(inner == 0 && outer == 1);

	/* Both at the same instant: the outer one is given up, and the inner with it. */
	inner = outer = 0;
	at_ns = now_ns() + ONBEAT_MS(3);
	onbeat_try_within_abs (at_ns) {
		onbeat_try_within_abs (at_ns) {
			compute_for_ever();
		}
		onbeat_handle
			onbeat_when (onbeat_deadline_violation) {
				inner++;
			}
		onbeat_end;
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			outer++;
		}
	onbeat_end;
	check(inner == 0 && outer == 1);

	/* Blocks of different kinds, the outer one expiring while the inner handler runs. */
	onbeat_try_within_rel (ONBEAT_MS(60)) {
		onbeat_try_within_wcet (ONBEAT_MS(1)) {
			compute_for_ever();
		}
		onbeat_handle
			onbeat_when (onbeat_wcet_violation) {
				wcet++;
				compute_for_ever();
			}
		onbeat_end;
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			deadline++;
		}
	onbeat_end;
	check(wcet <= 1 && deadline == 1);
	return 0;
}
