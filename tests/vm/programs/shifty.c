/*
 * A program that computes all the time and has a fixed priority for a moment after every 10 ms of CPU time, as one that
 * holds a lock when a real-time thread comes to wait for it.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <time.h>

#define NS_PER_MS 1000000L

static long has_run_ms(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return time.tv_sec * 1000 + time.tv_nsec / NS_PER_MS;
}

int main(void)
{
	struct sched_param fixed = { .sched_priority = 1 }, ordinary = { .sched_priority = 0 };

	for (long next = 10;; next += 10) {
		while (has_run_ms() < next) {
		}
		if (sched_setscheduler(0, SCHED_FIFO, &fixed) != 0 ||
		    sched_setscheduler(0, SCHED_OTHER, &ordinary) != 0) {
			perror("shifty");
			return 1;
		}
	}
}
