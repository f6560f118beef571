/*
 * A program that computes all the time and has a fixed priority for a moment after every 10 ms of CPU time, as one that
 * holds a lock when a real-time thread comes to wait for it.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>

#include "clock.h"

int main(void)
{
	struct sched_param fixed = { .sched_priority = 1 }, ordinary = { .sched_priority = 0 };

	for (long next = 10;; next += 10) {
		while (now_ns(CLOCK_THREAD_CPUTIME_ID) / 1000000 < next) {
		}
		if (sched_setscheduler(0, SCHED_FIFO, &fixed) != 0 ||
		    sched_setscheduler(0, SCHED_OTHER, &ordinary) != 0) {
			perror("shifty");
			return 1;
		}
	}
}
