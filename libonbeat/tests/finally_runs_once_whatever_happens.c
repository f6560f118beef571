/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * `finally` runs exactly once: after the end, a throw, a violation, a throw from a handler;
 * unbroken.
 */
#include <onbeat/within.h>

#include "check.h"

static volatile int finallys, handled;

int main(void)
{
	onbeat_try {
	}
	onbeat_finally {
		finallys++;
	}
	onbeat_handle
	onbeat_end;
	check(finallys == 1);

	onbeat_try {
		onbeat_throw(onbeat_exception);
	}
	onbeat_finally {
		finallys++;
	}
	onbeat_handle
		onbeat_when (onbeat_exception) {
			handled++;
		}
	onbeat_end;
	check(finallys == 2 && handled == 1);

	onbeat_try {
		onbeat_try {
			onbeat_throw(onbeat_exception);
		}
		onbeat_finally {
			finallys++;
		}
		onbeat_handle
			onbeat_when (onbeat_exception) {
				onbeat_rethrow();
			}
		onbeat_end;
	}
	onbeat_finally {
		finallys++;
	}
	onbeat_handle
		onbeat_when (onbeat_exception) {
			handled++;
		}
	onbeat_end;
	check(finallys == 4 && handled == 2);

	/* An outer deadline that passes in the inner `finally` waits for its end. */
	onbeat_try_within_rel (ONBEAT_MS(2)) {
		onbeat_try {
		}
		onbeat_finally {
			compute_ns(ONBEAT_MS(20));
			finallys++;
		}
		onbeat_handle
		onbeat_end;
		compute_for_ever();
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			handled++;
		}
	onbeat_end;
	check(handled == 3);
	check(finallys == 5 || finallys == 4);

	/* A throw out of `finally` replaces the exception and does not run it again. */
	onbeat_try {
		onbeat_try {
			onbeat_throw(onbeat_wcet_violation);
		}
		onbeat_finally {
			finallys = 100;
			onbeat_throw(onbeat_deadline_violation);
		}
		onbeat_handle
			onbeat_when (onbeat_exception) {
				handled = 100;
			}
		onbeat_end;
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			handled++;
		}
	onbeat_end;
	check(finallys == 100 && handled == 4);
	return 0;
}
