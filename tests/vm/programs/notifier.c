/* A program that tells of a missed deadline in the middle of a long computation.
 *
 * It first sleeps most of the time, for a while, with a period of 45 ms: who never does is not
 * listened to. Then it computes until that is nearly over, tells, and computes on. It prints how
 * often it slept from then on, so that the reader can see that it did not.
 *
 * usage: notifier
 *        One line: when it told, when it had computed (ns of CLOCK_MONOTONIC), and how often it slept from then to then. */
#include <onbeat/mdn.h>
#include <stdio.h>
#include <sys/resource.h>

#include "clock.h"

enum { NS_PER_MS = 1000000 };

static void compute_ms(long ms)
{
	long end = now_ns(CLOCK_MONOTONIC) + ms * NS_PER_MS;
	while (now_ns(CLOCK_MONOTONIC) < end) {
	}
}

static long times_asleep(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_nvcsw;
}

int main(void)
{
	struct timespec period = { .tv_nsec = 40 * NS_PER_MS };
	for (int job = 0; job < 40; job++) {
		compute_ms(5);
		nanosleep(&period, NULL);
	}
	compute_ms(period.tv_nsec / NS_PER_MS);
	long asleep = times_asleep();
	long told_ns = now_ns(CLOCK_MONOTONIC);
	onbeat_mdn();
	compute_ms(400);
	printf("%ld %ld %ld\n", told_ns, now_ns(CLOCK_MONOTONIC), times_asleep() - asleep);
	return 0;
}
