/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The paper's words without the prefix, on request. */
#define ONBEAT_SHORT_NAMES
#include <onbeat/within.h>

#include "check.h"

int main(void)
{
	volatile int handled = 0;
	volatile int finallys = 0;

	try_within_rel (ONBEAT_MS(2)) {
		compute_for_ever();
	}
	finally {
		finallys++;
	}
	handle
		when (deadline_violation) {
			handled++;
		}
	end;
	try {
		throw (wcet_violation);
	}
	handle
		when (timing_constraint_violation) {
			handled++;
		}
	end;
	check(handled == 2 && finallys == 1);
	return 0;
}
