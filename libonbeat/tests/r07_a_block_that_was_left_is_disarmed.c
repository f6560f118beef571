/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Requirement 7: a constraint ends with its block, whether that ends, throws or is violated. */
#include <onbeat/within.h>

#include <errno.h>
#include <time.h>

#include "check.h"

static ONBEAT_DEFINE_EXCEPTION(gave_up, onbeat_exception);

/*
 * Signals sent before their block was left, by a machine that stood still meanwhile: at most this
 * many.
 */
static volatile int on_their_way;

/* The portable form's second thread passes such a signal on when it gets to it. */
static void note_if_late(int64_t began_ns)
{
	on_their_way += now_ns() - began_ns >= ONBEAT_MS(10);
}

/* A sleep that any stray signal would cut short. */
static void sleep_undisturbed(void)
{
	struct timespec length = { 0, 30000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &length, NULL) != 0)
		check(on_their_way-- > 0);
}

int main(void)
{
	volatile int handled = 0;
	volatile int64_t began_ns = now_ns();

	onbeat_try_within_rel (ONBEAT_MS(10)) {
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			/* A machine that stood still for 10 ms: right as well. */
		}
	onbeat_end;
	note_if_late(began_ns);
	sleep_undisturbed();

	began_ns = now_ns();
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
	note_if_late(began_ns);
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
