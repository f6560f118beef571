/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Requirement 8: the latency from a violation to its handler is known, for either kind of
 * constraint, and can be negligible. How small it is on a machine is for bench/figures.c to say;
 * here a deadline of 10 ms must once be notified within a twentieth of that, however often it takes
 * on a busy machine.
 */
#include <onbeat/within.h>

#include "check.h"

#define DEADLINE_NS ONBEAT_MS(10)

/* The delay of one deadline's notification, checked against the clock. */
static int64_t deadline_delay_ns(void)
{
	volatile int64_t expires_ns = now_ns() + DEADLINE_NS;
	volatile int64_t delay_ns = -1;

	onbeat_try_within_abs (expires_ns) {
		compute_for_ever();
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			delay_ns = onbeat_delay();
			check(delay_ns >= 0 && delay_ns <= now_ns() - expires_ns);
			check(delay_ns == onbeat_caught()->delay_ns);
		}
	onbeat_end;
	return delay_ns;
}

/* The same for execution time, whose clock is the thread's own. */
static void check_wcet_delay(void)
{
	volatile int64_t begin_ns = read_clock(CLOCK_THREAD_CPUTIME_ID);
	volatile int64_t delay_ns = -1;

	onbeat_try_within_wcet (ONBEAT_MS(2)) {
		compute_for_ever();
	}
	onbeat_handle
		onbeat_when (onbeat_wcet_violation) {
			delay_ns = onbeat_delay();
			check(delay_ns <= read_clock(CLOCK_THREAD_CPUTIME_ID) - begin_ns - ONBEAT_MS(2));
		}
	onbeat_end;
	check(delay_ns >= 0);
}

int main(void)
{
	int64_t give_up_ns = now_ns() + ONBEAT_S(60);
	int64_t least_ns = deadline_delay_ns();

	check_wcet_delay();
	while (least_ns > DEADLINE_NS / 20 && now_ns() < give_up_ns) {
		int64_t delay_ns = deadline_delay_ns();

		least_ns = delay_ns < least_ns ? delay_ns : least_ns;
	}
	printf("at least %lld ns late\n", (long long)least_ns);
	check(least_ns <= DEADLINE_NS / 20);
	return 0;
}
