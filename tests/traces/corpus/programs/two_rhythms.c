// One thread with two rhythms: a job every A ms and another every B ms, both at absolute times.
//
// usage: two_rhythms A_MS B_MS

#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static void add(struct timespec *at, int64_t ns)
{
	ns += at->tv_nsec;
	at->tv_sec += ns / 1000000000;
	at->tv_nsec = ns % 1000000000;
}

static void work(int64_t ns)
{
	struct timespec now, until;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &until);
	add(&until, ns);
	do {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while (now.tv_sec < until.tv_sec ||
		 (now.tv_sec == until.tv_sec && now.tv_nsec < until.tv_nsec));
}

int main(int argc, char **argv)
{
	struct timespec next[2];
	int64_t period_ns[2];
	if (argc != 3)
		return 2;
	for (int i = 0; i < 2; i++) {
		clock_gettime(CLOCK_MONOTONIC, &next[i]);
		period_ns[i] = (int64_t)(atof(argv[i + 1]) * 1e6);
	}
	for (;;) {
		int first = next[1].tv_sec < next[0].tv_sec ||
			    (next[1].tv_sec == next[0].tv_sec && next[1].tv_nsec < next[0].tv_nsec);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next[first], NULL);
		work(first ? 2000000 : 500000);
		add(&next[first], period_ns[first]);
	}
}
