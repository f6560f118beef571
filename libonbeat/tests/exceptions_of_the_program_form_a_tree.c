/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Exceptions of the user's own, with super-types and values; throw and re-throw. */
#include <onbeat/within.h>

#include "check.h"

static ONBEAT_DEFINE_EXCEPTION(io_error, onbeat_exception);
static ONBEAT_DEFINE_EXCEPTION(disk_full, io_error);
static ONBEAT_DEFINE_EXCEPTION(late_frame, onbeat_deadline_violation);

static void fail(int *value)
{
	onbeat_throw_value(disk_full, value);
}

int main(void)
{
	volatile int taken = 0;
	int value = 42;

	onbeat_try {
		onbeat_try {
			fail(&value);
		}
		onbeat_handle
			onbeat_when (onbeat_timing_constraint_violation) {
				taken = 100;
			}
			onbeat_when (io_error) {
				check(onbeat_caught()->type == &disk_full);
				check(*(int *)onbeat_caught()->value == 42);
				taken++;
				onbeat_rethrow();
			}
			onbeat_when (onbeat_exception) {
				taken = 100;
			}
		onbeat_end;
		taken = 100;
	}
	onbeat_handle
		onbeat_when (disk_full) {
			check(*(int *)onbeat_caught()->value == 42);
			taken++;
		}
	onbeat_end;
	check(taken == 2);

	onbeat_try {
		onbeat_throw(late_frame);
	}
	onbeat_handle
		onbeat_when (onbeat_timing_constraint_violation) {
			taken++;
		}
	onbeat_end;
	check(taken == 3);
	return 0;
}
