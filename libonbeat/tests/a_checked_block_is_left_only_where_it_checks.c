/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A checked block is left at its check points alone, with the exceptions and the grammar of others,
 * and so may allocate, lock and sleep.
 */
#include <onbeat/within.h>

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "check.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int finals;

static void allocate_and_lock(void)
{
	for (int i = 0; i < 1000; i++) {
		void *memory;

		pthread_mutex_lock(&lock);
		memory = malloc(100 + (size_t)i);
		/* Holds it, and lets no check in while it does. */
		compute_ns(ONBEAT_US(5));
		free(memory);
		pthread_mutex_unlock(&lock);
	}
}

static void a_check_leaves_it(void)
{
	volatile int handled = 0, after = 0, rounds = 0;

	onbeat_try_checked_rel (ONBEAT_MS(2)) {
		allocate_and_lock();
		after++;
		for (;;) {
			rounds++;
			onbeat_check();
		}
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
	check(handled == 1 && after == 1 && rounds == 1 && finals == 1);
	check(pthread_mutex_trylock(&lock) == 0 && pthread_mutex_unlock(&lock) == 0);
}

static void without_a_check_its_end_does(void)
{
	volatile int handled = 0, whole = 0;

	onbeat_try_checked_abs (now_ns() + ONBEAT_MS(2)) {
		compute_ns(ONBEAT_MS(5));
		whole++;
	}
	onbeat_handle
		onbeat_when (onbeat_timing_constraint_violation) {
			handled++;
		}
	onbeat_end;
	check(handled == 1 && whole == 1);
}

static void execution_time_is_checked_too(void)
{
	volatile int handled = 0;

	onbeat_try_checked_wcet (ONBEAT_MS(5)) {
		for (;;)
			onbeat_check();
	}
	onbeat_handle
		onbeat_when (onbeat_wcet_violation) {
			handled++;
		}
	onbeat_end;
	check(handled == 1);
}

/* The inner block takes nothing that is the outer one's, of whichever kind both are. */
static void the_block_that_expired_catches(void)
{
	volatile int outer = 0;

	onbeat_try_checked_rel (ONBEAT_MS(3)) {
		onbeat_try_checked_rel (ONBEAT_S(60)) {
			for (;;)
				onbeat_check();
		}
		onbeat_handle
			onbeat_when (onbeat_exception) {
				check(0);
			}
		onbeat_end;
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			outer++;
		}
	onbeat_end;
	onbeat_try_within_rel (ONBEAT_MS(3)) {
		onbeat_try_checked_rel (ONBEAT_S(60)) {
			compute_ns(ONBEAT_MS(6));
			outer++;
			for (;;)
				onbeat_check();
		}
		onbeat_handle
		onbeat_end;
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			outer++;
		}
	onbeat_end;
	check(outer == 3);
}

static void a_protected_section_stays_one(void)
{
	volatile int handled = 0, inside = 0;

	onbeat_try_checked_rel (ONBEAT_MS(2)) {
		onbeat_within_disable();
		compute_ns(ONBEAT_MS(4));
		onbeat_check();
		inside++;
		onbeat_within_enable();
		inside++;
		onbeat_check();
		check(0);
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			handled++;
		}
	onbeat_end;
	check(handled == 1 && inside == 2);
}

static void what_it_throws_by_hand_is_handled(void)
{
	volatile int handled = 0;

	onbeat_try_checked_rel (ONBEAT_S(60)) {
		onbeat_throw(onbeat_exception);
	}
	onbeat_handle
		onbeat_when (onbeat_exception) {
			handled++;
		}
	onbeat_end;
	check(handled == 1);
	/* Nothing of it is left: a block that is not checked is interrupted. */
	onbeat_try_within_rel (ONBEAT_MS(2)) {
		compute_for_ever();
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			handled++;
		}
	onbeat_end;
	check(handled == 2);
}

static void a_call_that_sleeps_ends_when_it_expires(void)
{
	volatile int handled = 0;

	onbeat_try_checked_rel (ONBEAT_MS(5)) {
		const struct timespec minute = { 60, 0 };

		check(nanosleep(&minute, NULL) == -1 && errno == EINTR);
		onbeat_check();
		check(0);
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			handled++;
		}
	onbeat_end;
	check(handled == 1);
}

int main(void)
{
	onbeat_check();
	a_check_leaves_it();
	without_a_check_its_end_does();
	execution_time_is_checked_too();
	the_block_that_expired_catches();
	a_protected_section_stays_one();
	what_it_throws_by_hand_is_handled();
	a_call_that_sleeps_ends_when_it_expires();
	onbeat_check();
	return 0;
}
