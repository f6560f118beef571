/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Exceptions of the program's own, `finally`, and what a handler can ask; by the short names. */
#define ONBEAT_SHORT_NAMES
#include "check.h"

#include <onbeat/within.h>

static ONBEAT_DEFINE_EXCEPTION(io_error, onbeat_exception);
static ONBEAT_DEFINE_EXCEPTION(disk_full, io_error);
static ONBEAT_DEFINE_EXCEPTION(late_frame, onbeat_deadline_violation);

static int token = 42;
static volatile int finallys, handled;

static void they_form_a_tree(void)
{
	try {
		try {
			onbeat_throw_value(disk_full, &token);
		}
		handle
			when (timing_constraint_violation) {
				check(0);
			}
			when (io_error) {
				check(onbeat_caught()->type == &disk_full && onbeat_caught()->value == &token);
				handled++;
				onbeat_rethrow();
			}
			when (onbeat_exception) {
				check(0);
			}
		end;
		check(0);
	}
	handle
		when (disk_full) {
			check(onbeat_caught()->value == &token);
			handled++;
		}
	end;
	check(handled == 2);
	check_left_by(deadline_violation, try, throw (late_frame));
	check_left_by(timing_constraint_violation, try, throw (wcet_violation));
}

/* The storm counts that it runs once after an end, a throw, a violation and a rethrow. */
static void finally_is_unbroken_and_may_throw(void)
{
	handled = finallys = 0;
	/* An outer deadline that passes in the inner `finally` waits for its end. */
	try_within_rel (ONBEAT_MS(2)) {
		try {
			finallys = -1;
		}
		finally {
			compute_ns(ONBEAT_MS(20));
			finallys = 1;
		}
		handle
		end;
		compute_for_ever();
	}
	handle
		when (deadline_violation) {
			handled++;
		}
	end;
	/* A machine that stood still may have left the outer block before. */
	check(handled == 1 && finallys >= 0);

	/* A throw out of it replaces the exception and does not run it again. */
	finallys = 0;
	try {
		try {
			throw (wcet_violation);
		}
		finally {
			finallys++;
			throw (deadline_violation);
		}
		handle
			when (onbeat_exception) {
				check(0);
			}
		end;
	}
	handle
		when (deadline_violation) {
			handled++;
		}
	end;
	check(handled == 2 && finallys == 1);
}

static volatile int64_t delay_ns, rethrown_delay_ns;

static void violate_late(void)
{
	try_checked_rel (ONBEAT_MS(1)) {
		compute_ns(ONBEAT_MS(20));
	}
	handle
		when (deadline_violation) {
			delay_ns = onbeat_delay();
			try_within_rel (ONBEAT_S(100) - onbeat_delay()) {
				check(onbeat_delay() == delay_ns && onbeat_remaining() <= ONBEAT_S(100) - delay_ns);
				onbeat_throw_value(io_error, &token);
			}
			finally {
				check(onbeat_caught()->type == &deadline_violation);
			}
			handle
				when (io_error) {
					check(onbeat_caught()->value == &token);
					handled++;
				}
			end;
			check(onbeat_delay() == delay_ns);
			try {
				onbeat_rethrow();
			}
			finally {
				handled++;
			}
			handle
				when (io_error) {
					check(0);
				}
			end;
		}
	end;
}

/* Also in the limit and the body of a block inside it; thrown again, it keeps its delay. */
static void a_handler_can_name_its_exception_in_blocks_of_its_own(void)
{
	handled = 0;
	try {
		check(!onbeat_caught()->type);
		violate_late();
	}
	handle
		when (deadline_violation) {
			rethrown_delay_ns = onbeat_delay();
		}
	end;
	check(handled == 2 && delay_ns >= ONBEAT_MS(18) && rethrown_delay_ns == delay_ns);
	/* Over once its handler has been left, in whatever way. */
	try {
		check(!onbeat_caught()->type && onbeat_delay() == 0);
	}
	handle
	end;
}

int main(void)
{
	run_test(they_form_a_tree);
	run_test(finally_is_unbroken_and_may_throw);
	run_test(a_handler_can_name_its_exception_in_blocks_of_its_own);
	return 0;
}
