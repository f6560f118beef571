/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Requirement 5: nesting up to a configurable level. */
#include <onbeat/within.h>

#include "check.h"

static volatile int violated_at;

static void nest(volatile int depth)
{
	onbeat_try_within_rel (depth == 7 ? ONBEAT_MS(5) : ONBEAT_S(100)) {
		if (depth < onbeat_max_depth())
			nest(depth + 1);
		else
			compute_for_ever();
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			violated_at = depth;
		}
	onbeat_end;
}

int main(void)
{
	check(onbeat_max_depth() >= 16);
	nest(1);
	check(violated_at == 7);
	check(onbeat_remaining() == ONBEAT_FOREVER);
	return 0;
}
