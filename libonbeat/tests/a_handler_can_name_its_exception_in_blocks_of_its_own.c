/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * onbeat_caught(), onbeat_delay() and onbeat_rethrow() mean the exception that is being handled,
 * also in the limit and the body of a block inside the handler; thrown again, it keeps its delay.
 */
#include <onbeat/within.h>

#include "check.h"

static ONBEAT_DEFINE_EXCEPTION(gave_up, onbeat_exception);

static volatile int64_t delay_ns, rethrown_delay_ns;
static int token;
static volatile int retried, nested, finished;

static void violate_late(void)
{
	onbeat_try_checked_rel (ONBEAT_MS(1)) {
		compute_ns(ONBEAT_MS(20));
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			delay_ns = onbeat_delay();
			onbeat_try_within_rel (ONBEAT_S(100) - onbeat_delay()) {
				check(onbeat_delay() == delay_ns);
				check(onbeat_remaining() <= ONBEAT_S(100) - delay_ns);
				retried++;
				onbeat_throw_value(gave_up, &token);
			}
			onbeat_finally {
				check(onbeat_caught()->type == &onbeat_deadline_violation);
			}
			onbeat_handle
				onbeat_when (gave_up) {
					check(onbeat_caught()->value == &token);
					nested++;
				}
			onbeat_end;
			check(onbeat_delay() == delay_ns);
			onbeat_try {
				onbeat_rethrow();
			}
			onbeat_finally {
				finished++;
			}
			onbeat_handle
				onbeat_when (gave_up) {
					finished = 100;
				}
			onbeat_end;
		}
	onbeat_end;
}

int main(void)
{
	onbeat_try {
		check(!onbeat_caught()->type);
		violate_late();
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			rethrown_delay_ns = onbeat_delay();
		}
	onbeat_end;
	check(retried == 1 && nested == 1 && finished == 1);
	check(delay_ns >= ONBEAT_MS(18) && rethrown_delay_ns == delay_ns);
	/* Over once its handler has been left, in whatever way. */
	onbeat_try {
		check(!onbeat_caught()->type && onbeat_delay() == 0);
	}
	onbeat_handle
	onbeat_end;
	return 0;
}
