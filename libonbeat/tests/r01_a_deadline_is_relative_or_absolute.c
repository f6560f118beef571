/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Requirement 1: a deadline constraint on a code segment, by relative or absolute time. */
#include <onbeat/within.h>

#include "check.h"

int main(void)
{
	volatile int relative = 0;
	volatile int absolute = 0;
	volatile int past = 0;
	volatile int in_time = 0;
	volatile int64_t begin_ns = now_ns();

	onbeat_try_within_rel (ONBEAT_MS(5)) {
		compute_for_ever();
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			relative++;
		}
	onbeat_end;
	check(relative == 1);
	check(now_ns() - begin_ns >= ONBEAT_MS(5));

	begin_ns = now_ns();
	onbeat_try_within_abs (begin_ns + ONBEAT_MS(5)) {
		compute_for_ever();
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			absolute++;
		}
	onbeat_end;
	check(absolute == 1);
	check(now_ns() - begin_ns >= ONBEAT_MS(5));

	onbeat_try_within_abs (begin_ns) {
		compute_for_ever();
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			past++;
		}
	onbeat_end;
	check(past == 1);

	onbeat_try_within_rel (ONBEAT_S(100)) {
		in_time++;
	}
	onbeat_handle
		onbeat_when (onbeat_exception) {
			in_time = 100;
		}
	onbeat_end;
	check(in_time == 1);
	return 0;
}
