/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The requirements of the paper's section 4; 8, 12 and 13 have files of their own. */
#include <onbeat/within.h>

#include <errno.h>

#include "check.h"

static ONBEAT_DEFINE_EXCEPTION(gave_up, onbeat_exception);

static void r01_a_deadline_is_relative_or_absolute(void)
{
	int64_t begin_ns = now_ns();

	check_left_by(onbeat_deadline_violation, onbeat_try_within_rel (ONBEAT_MS(5)), compute_for_ever());
	check(now_ns() - begin_ns >= ONBEAT_MS(5));
	begin_ns = now_ns();
	check_left_by(onbeat_deadline_violation, onbeat_try_within_abs (begin_ns + ONBEAT_MS(5)), compute_for_ever());
	check(now_ns() - begin_ns >= ONBEAT_MS(5));
	check_left_by(onbeat_deadline_violation, onbeat_try_within_abs (begin_ns), compute_for_ever());
	onbeat_try_within_rel (ONBEAT_S(100)) {
	}
	onbeat_handle
		onbeat_when (onbeat_exception) {
			check(0);
		}
	onbeat_end;
}

static void r02_execution_time_is_limited_and_sleeping_does_not_count(void)
{
	int64_t used_ns = cpu_now_ns();
	volatile int slept = 0;

	check_left_by(onbeat_wcet_violation, onbeat_try_within_wcet (ONBEAT_MS(20)), compute_for_ever());
	check(cpu_now_ns() - used_ns >= ONBEAT_MS(20));
	used_ns = cpu_now_ns();
	onbeat_try_within_wcet (ONBEAT_MS(50)) {
		nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
		slept = 1;
	}
	onbeat_handle
		onbeat_when (onbeat_wcet_violation) {
			/* Right only where a stop of the whole machine counts as execution. */
			slept = cpu_now_ns() - used_ns >= ONBEAT_MS(50);
		}
	onbeat_end;
	check(slept);
}

static void r03_a_handler_is_for_any_violation_or_for_one_kind(void)
{
	volatile int generic = 0;

	check_left_by(onbeat_timing_constraint_violation, onbeat_try_within_rel (ONBEAT_MS(2)), compute_for_ever());
	onbeat_try_within_wcet (ONBEAT_MS(2)) {
		compute_for_ever();
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			check(0);
		}
		onbeat_when (onbeat_timing_constraint_violation) {
			generic++;
			check(onbeat_caught()->type == &onbeat_wcet_violation);
		}
	onbeat_end;
	check(generic == 1);
	onbeat_try {
		check_left_by(onbeat_wcet_violation, onbeat_try_within_rel (ONBEAT_MS(2)), compute_for_ever());
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			generic++;
		}
	onbeat_end;
	check(generic == 2);
}

static void *twenty_violations(void *unused)
{
	for (volatile int i = 0; i < 20; i++)
		check_left_by(onbeat_deadline_violation, onbeat_try_within_rel (ONBEAT_US(500)), compute_for_ever());
	return unused;
}

static void in_eight_threads(void)
{
	pthread_t threads[8];

	for (int i = 0; i < 8; i++)
		check(pthread_create(&threads[i], NULL, twenty_violations, NULL) == 0);
	for (int i = 0; i < 8; i++)
		check(pthread_join(threads[i], NULL) == 0);
}

static void r04_threads_and_processes_have_their_own(void)
{
	pid_t child = fork();

	in_eight_threads();
	if (child == 0)
		_exit(0);
	wait_for(child);
}

static volatile int violated_at;

static void nest(volatile int depth)
{
	onbeat_try_within_rel (depth == 7 ? ONBEAT_MS(5) : ONBEAT_S(100)) {
		if (depth < onbeat_max_depth())
			nest(depth + 1);
		else
			compute_for_ever();
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			violated_at = depth;
		}
	onbeat_end;
}

static void r05_blocks_nest_to_the_depth_that_was_built(void)
{
	check(onbeat_max_depth() >= 16);
	nest(1);
	check(violated_at == 7);
	check(onbeat_remaining() == ONBEAT_FOREVER);
}

static volatile int inner, outer, inner_finally, outer_finally;

/* Protected until both blocks are entered, so that it is in the inner one that a limit passes. */
static void nested(int64_t outer_ns, int64_t inner_ns)
{
	inner = outer = inner_finally = outer_finally = 0;
	onbeat_within_disable();
	onbeat_try_within_abs (outer_ns) {
		onbeat_try_within_abs (inner_ns) {
			onbeat_within_enable();
			compute_for_ever();
		}
		onbeat_finally {
			inner_finally++;
		}
		onbeat_handle
			onbeat_when (onbeat_deadline_violation) {
				inner++;
			}
		onbeat_end;
	}
	onbeat_finally {
		outer_finally++;
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			outer++;
		}
	onbeat_end;
	onbeat_within_enable();
	check(inner_finally == 1 && outer_finally == 1);
}

static void r06_the_block_that_was_violated_catches(void)
{
	const int64_t late_ns = now_ns() + ONBEAT_S(100);
	int64_t soon_ns;

	nested(late_ns, now_ns() + ONBEAT_MS(3));
	check(inner == 1 && outer == 0);
	nested(now_ns() + ONBEAT_MS(3), late_ns);
	check(inner == 0 && outer == 1);
	/* Both at the same instant: the outer one is given up, and the inner with it. */
	soon_ns = now_ns() + ONBEAT_MS(3);
	nested(soon_ns, soon_ns);
	check(inner == 0 && outer == 1);

	/* Blocks of different kinds, the outer one expiring while the inner handler runs. */
	inner = 0;
	onbeat_try_within_rel (ONBEAT_MS(60)) {
		onbeat_try_within_wcet (ONBEAT_MS(1)) {
			compute_for_ever();
		}
		onbeat_handle
			onbeat_when (onbeat_wcet_violation) {
				inner++;
				compute_for_ever();
			}
		onbeat_end;
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			outer++;
		}
	onbeat_end;
	check(inner <= 1 && outer == 2);
}

/* Signals sent before their block was left, because the machine stood still: at most. */
static volatile int on_their_way;

/* The portable form's second thread passes such a signal on when it gets to it. */
static void leave_early(bool throws)
{
	const int64_t began_ns = now_ns();

	onbeat_try_within_rel (ONBEAT_MS(10)) {
		if (throws)
			onbeat_throw(gave_up);
	}
	onbeat_handle
		onbeat_when (gave_up) {
			check(throws);
		}
		onbeat_when (onbeat_deadline_violation) {
			/* A machine that stood still for 10 ms: right as well. */
		}
	onbeat_end;
	on_their_way += now_ns() - began_ns >= ONBEAT_MS(10);
}

/* A sleep that any stray signal would cut short. */
static void sleep_undisturbed(void)
{
	struct timespec length = { 0, 30000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &length, NULL) != 0)
		check(on_their_way-- > 0);
}

static void r07_a_block_that_was_left_is_disarmed(void)
{
	leave_early(false);
	sleep_undisturbed();
	leave_early(true);
	sleep_undisturbed();
	onbeat_try_within_rel (ONBEAT_S(100)) {
		check_left_by(onbeat_deadline_violation, onbeat_try_within_rel (ONBEAT_MS(1)), compute_for_ever());
		sleep_undisturbed();
		check(onbeat_remaining() > ONBEAT_S(30));
	}
	onbeat_handle
	onbeat_end;
	check(onbeat_remaining() == ONBEAT_FOREVER);
	sleep_undisturbed();
}

static void r09_protected_sections_defer_and_never_lose(void)
{
	volatile int completed = 0, violations = 0;

	/* Protected from before the block on, lest the limit pass before its first statement. */
	onbeat_within_disable();
	onbeat_try_within_rel (ONBEAT_MS(2)) {
		onbeat_within_disable();
		compute_ns(ONBEAT_MS(20));
		onbeat_within_enable();
		completed++;
		onbeat_within_enable();
		check(0);
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			violations++;
			check(onbeat_delay() >= ONBEAT_MS(18));
		}
	onbeat_end;
	onbeat_within_enable();
	check(completed == 1 && violations == 1);

	/* A whole block inside a protected section: its own violation is thrown where it ends. */
	onbeat_within_disable();
	check_left_by(onbeat_deadline_violation, onbeat_try_within_rel (ONBEAT_MS(2)), compute_ns(ONBEAT_MS(20)); completed++);
	onbeat_within_enable();
	check(completed == 2);

	/* A section that a throw left is over. */
	check_left_by(onbeat_exception, onbeat_try, onbeat_within_disable(); onbeat_throw(onbeat_exception));
	check_left_by(onbeat_deadline_violation, onbeat_try_within_rel (ONBEAT_MS(2)), compute_for_ever());
}

_Static_assert(ONBEAT_S(2) == ONBEAT_MS(2000) && ONBEAT_MS(3) == ONBEAT_US(3000) && ONBEAT_US(4) == ONBEAT_NS(4000),
	       "times are nanoseconds");

static void r10_the_time_that_remains_can_be_asked(void)
{
	check(ONBEAT_MS(0.5) == 500000 && ONBEAT_S(1.5) == ONBEAT_MS(1500));
	check(ONBEAT_S(INT64_C(9000000000)) == INT64_C(9000000000) * 1000000000);
	check(onbeat_remaining() == ONBEAT_FOREVER && onbeat_remaining_wcet() == ONBEAT_FOREVER);
	onbeat_try_within_rel (ONBEAT_S(100)) {
		int64_t first_ns = onbeat_remaining();

		check(first_ns <= ONBEAT_S(100) && first_ns > 0);
		compute_ns(ONBEAT_MS(1));
		check(onbeat_remaining() <= first_ns - ONBEAT_MS(1));
		onbeat_try_within_rel (ONBEAT_S(200)) {
			check(onbeat_remaining() < ONBEAT_S(100));
		}
		onbeat_handle
		onbeat_end;
		onbeat_try_within_wcet (ONBEAT_S(50)) {
			check(onbeat_remaining_wcet() <= ONBEAT_S(50) && onbeat_remaining_wcet() > ONBEAT_S(1));
		}
		onbeat_handle
		onbeat_end;
		check(onbeat_remaining_wcet() == ONBEAT_FOREVER);
	}
	onbeat_handle
	onbeat_end;
	check(onbeat_remaining() == ONBEAT_FOREVER);
}

static void r11_the_delay_of_a_notification_is_told(void)
{
	const int64_t expires_ns = now_ns() + ONBEAT_MS(3), used_ns = cpu_now_ns();
	volatile int64_t delay_ns = -1, wcet_delay_ns = -1;

	onbeat_try_within_abs (expires_ns) {
		compute_for_ever();
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			delay_ns = onbeat_delay();
			check(delay_ns <= now_ns() - expires_ns && delay_ns == onbeat_caught()->delay_ns);
		}
	onbeat_end;
	onbeat_try_within_wcet (ONBEAT_MS(2)) {
		compute_for_ever();
	}
	onbeat_handle
		onbeat_when (onbeat_wcet_violation) {
			wcet_delay_ns = onbeat_delay();
			check(wcet_delay_ns <= cpu_now_ns() - used_ns - ONBEAT_MS(2));
		}
	onbeat_end;
	check(delay_ns >= 0 && wcet_delay_ns >= 0);
}

int main(void)
{
	run_test(r01_a_deadline_is_relative_or_absolute);
	run_test(r02_execution_time_is_limited_and_sleeping_does_not_count);
	run_test(r03_a_handler_is_for_any_violation_or_for_one_kind);
	run_test(r04_threads_and_processes_have_their_own);
	run_test(r05_blocks_nest_to_the_depth_that_was_built);
	run_test(r06_the_block_that_was_violated_catches);
	run_test(r07_a_block_that_was_left_is_disarmed);
	run_test(r09_protected_sections_defer_and_never_lose);
	run_test(r10_the_time_that_remains_can_be_asked);
	run_test(r11_the_delay_of_a_notification_is_told);
	return 0;
}
