/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* With the exceptions and the grammar of others, so that it may allocate, lock and sleep. */
#include <onbeat/within.h>

#include <errno.h>

#include "check.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int finals, reached;

static void check_for_ever(void)
{
	for (;;)
		onbeat_check();
}

/* Longer than the block may take, and lets no check in while it holds the lock. */
static void allocate_and_lock(void)
{
	for (int i = 0; i < 1000; i++) {
		void *memory;

		pthread_mutex_lock(&lock);
		memory = malloc(100 + (size_t)i);
		compute_ns(ONBEAT_US(5));
		free(memory);
		pthread_mutex_unlock(&lock);
	}
	reached++;
}

static void a_check_leaves_it(void)
{
	volatile int handled = 0;

	onbeat_try_checked_rel (ONBEAT_MS(2)) {
		allocate_and_lock();
		onbeat_check();
		check(0);
	}
	onbeat_finally {
		onbeat_check();
		finals++;
	}
	onbeat_handle
		onbeat_when (onbeat_wcet_violation) {
			check(0);
		}
		onbeat_when (onbeat_deadline_violation) {
			handled++;
			check(onbeat_delay() >= ONBEAT_MS(2));
		}
	onbeat_end;
	check(handled == 1 && reached == 1 && finals == 1);
	check(pthread_mutex_trylock(&lock) == 0 && pthread_mutex_unlock(&lock) == 0);
	check_left_by(onbeat_wcet_violation, onbeat_try_checked_wcet (ONBEAT_MS(5)), check_for_ever());
}

static void without_a_check_its_end_does(void)
{
	reached = 0;
	check_left_by(onbeat_timing_constraint_violation, onbeat_try_checked_abs (now_ns() + ONBEAT_MS(2)),
		      compute_ns(ONBEAT_MS(5)); reached++);
	check(reached == 1);
}

static void a_long_checked_block(void)
{
	onbeat_try_checked_rel (ONBEAT_S(60)) {
		onbeat_within_enable();
		compute_ns(ONBEAT_MS(6));
		reached++;
		check_for_ever();
	}
	onbeat_handle
		onbeat_when (onbeat_exception) {
			check(0);
		}
	onbeat_end;
}

/* The inner block, protected until it is entered, takes nothing that is the outer one's. */
static void the_block_that_expired_catches(void)
{
	reached = 0;
	onbeat_within_disable();
	check_left_by(onbeat_deadline_violation, onbeat_try_checked_rel (ONBEAT_MS(3)), a_long_checked_block());
	check_left_by(onbeat_deadline_violation, onbeat_try_within_rel (ONBEAT_MS(3)), a_long_checked_block());
	onbeat_within_enable();
	check(reached == 2);
}

static void section_and_check(void)
{
	onbeat_within_disable();
	compute_ns(ONBEAT_MS(4));
	onbeat_check();
	onbeat_within_enable();
	reached++;
	onbeat_check();
	check(0);
}

static void a_protected_section_stays_one(void)
{
	reached = 0;
	check_left_by(onbeat_deadline_violation, onbeat_try_checked_rel (ONBEAT_MS(2)), section_and_check());
	check(reached == 1);
}

static void what_it_throws_by_hand_is_handled(void)
{
	check_left_by(onbeat_exception, onbeat_try_checked_rel (ONBEAT_S(60)), onbeat_throw(onbeat_exception));
	/* Nothing of it is left: a block that is not checked is interrupted. */
	check_left_by(onbeat_deadline_violation, onbeat_try_within_rel (ONBEAT_MS(2)), compute_for_ever());
}

static void sleep_and_check(void)
{
	check(nanosleep(&(struct timespec){ .tv_sec = 60 }, NULL) == -1 && errno == EINTR);
	onbeat_check();
	check(0);
}

static void a_call_that_sleeps_ends_when_it_expires(void)
{
	check_left_by(onbeat_deadline_violation, onbeat_try_checked_rel (ONBEAT_MS(5)), sleep_and_check());
}

int main(void)
{
	onbeat_check();
	run_test(a_check_leaves_it);
	run_test(without_a_check_its_end_does);
	run_test(the_block_that_expired_catches);
	run_test(a_protected_section_stays_one);
	run_test(what_it_throws_by_hand_is_handled);
	run_test(a_call_that_sleeps_ends_when_it_expires);
	onbeat_check();
	return 0;
}
