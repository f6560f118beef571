/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Requirement 7: a constraint ends with its block, whether that ends, throws or is violated. */
#include <onbeat/within.h>

#include <errno.h>
#include <time.h>

#include "check.h"

static ONBEAT_DEFINE_EXCEPTION(gave_up, onbeat_exception);

/* A sleep that any stray signal would cut short. */
static void sleep_undisturbed(void)
{
	struct timespec length = { 0, 30000000 };

	check(clock_nanosleep(CLOCK_MONOTONIC, 0, &length, NULL) == 0);
}

int main(void)
{
	volatile int handled = 0;

	onbeat_try_within_rel (ONBEAT_MS(10)) {
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			/* A machine that stood still for 10 ms: right as well. */
		}
	onbeat_end;
	sleep_undisturbed();

	onbeat_try_within_rel (ONBEAT_MS(10)) {
		onbeat_throw(gave_up);
	}
	onbeat_handle
		onbeat_when (gave_up) {
			handled++;
		}
		onbeat_when (onbeat_deadline_violation) {
			/* The same. */
			handled++;
		}
	onbeat_end;
	check(handled == 1);
	sleep_undisturbed();

	onbeat_try_within_rel (ONBEAT_S(100)) {
		onbeat_try_within_rel (ONBEAT_MS(1)) {
			compute_for_ever();
		}
		onbeat_handle
			onbeat_when (onbeat_deadline_violation) {
				handled++;
			}
		onbeat_end;
		sleep_undisturbed();
		check(onbeat_remaining() > ONBEAT_S(30));
	}
	onbeat_handle
	onbeat_end;
	check(handled == 2);
	check(onbeat_remaining() == ONBEAT_FOREVER);
	sleep_undisturbed();
	return 0;
}
