/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A control loop with absolute deadlines: each step has to be out before the next one begins. A
 * step looks at what is left before it starts its optional part, and the last command is used again
 * if it comes too late.
 *
 * cc -o control_loop control_loop.c $(pkg-config --cflags --libs onbeat)
 */
#include <onbeat/within.h>

#include <errno.h>
#include <stdio.h>
#include <time.h>

#define PERIOD_NS ONBEAT_MS(5)
#define OPTIONAL_PART_NS ONBEAT_US(200)
#define STEPS 20

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return ONBEAT_S(now.tv_sec) + ONBEAT_NS(now.tv_nsec);
}

static void sleep_until(int64_t ns)
{
	struct timespec when = { ns / ONBEAT_S(1), ns % ONBEAT_S(1) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) == EINTR)
		;
}

static void compute(int amount)
{
	for (volatile int i = 0; i < amount; i++)
		;
}

int main(void)
{
	volatile int refined = 0, late = 0;
	volatile int64_t next_ns = now_ns();

	/* Before the loop, so that its first step takes no longer than the others. */
	if (onbeat_within_prepare())
		return 1;
	printf("blocks nest %d deep; execution time is watched by %s\n", onbeat_max_depth(),
	       onbeat_wcet_source() == ONBEAT_WCET_CPU_TIMER ? "the CPU-time timer" : "perf's task clock");
	for (volatile int step = 0; step < STEPS; step++) {
		next_ns += PERIOD_NS;
		onbeat_try_within_abs (next_ns) {
			compute(step % 4 == 3 ? 2000000000 : 20000);
			if (onbeat_remaining() > OPTIONAL_PART_NS && onbeat_remaining_wcet() == ONBEAT_FOREVER) {
				compute(1000);
				refined++;
			}
		}
		onbeat_handle
			onbeat_when (onbeat_timing_constraint_violation) {
				late++;
			}
		onbeat_end;
		sleep_until(next_ns);
	}
	printf("%d steps in time, %d late; %d were refined\n", STEPS - late, late, refined);
	return late >= STEPS / 4 && late <= STEPS ? 0 : 1;
}
