/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * No overrun passes as in time: a block that ends after its deadline or beyond its limit is
 * violated there at the latest, also if no notification comes: by the CPU-time timer, in a block
 * that blocks all signals, and in a program that has taken the library's signal for itself.
 */
#include <onbeat/within.h>

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include "../src/within.h"
#include "check.h"

#define TIMES 20

static volatile int completed, violated, inner_violated;

static bool blocks_signals;
static volatile int begun;

/* A machine that stalls may have a block expire before that. */
static void block_signals(void)
{
	sigset_t all;

	sigfillset(&all);
	check(!blocks_signals || pthread_sigmask(SIG_SETMASK, &all, NULL) == 0);
	begun++;
}

static void overrun_a_deadline(void)
{
	onbeat_try_within_rel (ONBEAT_MS(1)) {
		block_signals();
		compute_ns(ONBEAT_MS(2));
		completed++;
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			violated++;
		}
	onbeat_end;
}

static void overrun_a_limit(void)
{
	onbeat_try_within_wcet (ONBEAT_MS(1)) {
		int64_t end_ns = read_clock(CLOCK_THREAD_CPUTIME_ID) + ONBEAT_US(1050);

		block_signals();
		while (read_clock(CLOCK_THREAD_CPUTIME_ID) < end_ns)
			;
		completed++;
	}
	onbeat_handle
		onbeat_when (onbeat_wcet_violation) {
			violated++;
		}
	onbeat_end;
}

/* The block around it has a deadline that comes sooner; both are told. */
static void overrun_two_deadlines(void)
{
	onbeat_try_within_rel (ONBEAT_US(500)) {
		block_signals();
		onbeat_try_within_rel (ONBEAT_MS(1)) {
			compute_ns(ONBEAT_MS(2));
		}
		onbeat_handle
			onbeat_when (onbeat_deadline_violation) {
				inner_violated++;
			}
		onbeat_end;
		compute_ns(ONBEAT_MS(1));
		completed++;
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			violated++;
		}
	onbeat_end;
}

static void repeat(void (*overrun)(void))
{
	violated = 0;
	for (int i = 0; i < TIMES; i++)
		overrun();
	check(violated == TIMES);
}

/* Perf's clock is a descriptor: without one to spare, the library takes the CPU-time timer. */
static void *by_the_timer(void *unused)
{
	struct rlimit before, none;

	check(getrlimit(RLIMIT_NOFILE, &before) == 0);
	none = before;
	none.rlim_cur = 0;
	check(setrlimit(RLIMIT_NOFILE, &none) == 0);
	check(onbeat_wcet_source() == ONBEAT_WCET_CPU_TIMER);
	check(setrlimit(RLIMIT_NOFILE, &before) == 0);
	repeat(overrun_a_limit);
	return unused;
}

static void *with_all_signals_blocked(void *unused)
{
	blocks_signals = true;
	completed = begun = 0;
	repeat(overrun_a_deadline);
	repeat(overrun_a_limit);
	check(completed == begun);
	completed = begun = 0;
	repeat(overrun_two_deadlines);
	check(completed == begun && inner_violated == begun);
	blocks_signals = false;
	return unused;
}

static void take_note(int number)
{
	(void)number;
}

static void *with_its_signal_taken(void *unused)
{
	struct sigaction action = { .sa_handler = take_note };

	overrun_a_deadline();
	check(sigaction(ONBEAT_SIGNAL, &action, NULL) == 0);
	completed = 0;
	repeat(overrun_a_deadline);
	repeat(overrun_a_limit);
	check(completed == 2 * TIMES);
	return unused;
}

int main(void)
{
	void *(*const threads[])(void *) = { by_the_timer, with_all_signals_blocked, with_its_signal_taken };

	for (size_t i = 0; i < sizeof(threads) / sizeof(threads[0]); i++) {
		pthread_t thread;

		check(pthread_create(&thread, NULL, threads[i], NULL) == 0);
		check(pthread_join(thread, NULL) == 0);
	}
	return 0;
}
