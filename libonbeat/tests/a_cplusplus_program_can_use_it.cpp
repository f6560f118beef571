// SPDX-License-Identifier: MIT OR Apache-2.0
// C++ callers: the header compiles, and what a destructor would do stands in `finally`.
#include <onbeat/within.h>

#include <string>

#include "check.h"

int main()
{
	// Declared outside the block: destroyed as usual, whatever happens inside.
	std::string text = "before";
	volatile int handled = 0;
	volatile int finallys = 0;

	onbeat_try_within_rel (ONBEAT_MS(2)) {
		onbeat_within_disable();
		text = "a string that is long enough to be allocated on the heap, safely, in a protected section";
		onbeat_within_enable();
		compute_for_ever();
	}
	onbeat_finally {
		finallys = finallys + 1;
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			handled = handled + 1;
		}
	onbeat_end;
	check(handled == 1 && finallys == 1);
	check(text.size() > 40 || text == "before");
	return 0;
}
