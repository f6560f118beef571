/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A function that throws while it computes a block's limit throws out of the block around; the body
 * does not run.
 */
#include <onbeat/within.h>

#include "check.h"

static int64_t limit_that_throws(void)
{
	onbeat_throw(onbeat_exception);
}

static volatile int ran, caught_inside, caught_around;

#define LIMITED(constrained)                              \
	onbeat_try {                                      \
		constrained (limit_that_throws()) {       \
			ran++;                            \
		}                                         \
		onbeat_handle                             \
			onbeat_when (onbeat_exception) {  \
				caught_inside++;          \
			}                                 \
		onbeat_end;                               \
	}                                                 \
	onbeat_handle                                     \
		onbeat_when (onbeat_exception) {          \
			caught_around++;                  \
		}                                         \
	onbeat_end

int main(void)
{
	LIMITED(onbeat_try_within_rel);
	LIMITED(onbeat_try_within_abs);
	LIMITED(onbeat_try_within_wcet);
	check(ran == 0 && caught_inside == 0 && caught_around == 3);
	return 0;
}
