/* A program with a period of 40 ms, for as many jobs as its argument says. */
#include <stdlib.h>
#include <time.h>

int main(int count, char **words)
{
	struct timespec next;
	long jobs = count > 1 ? atol(words[1]) : 0;

	clock_gettime(CLOCK_MONOTONIC, &next);
	for (long job = 0; job < jobs; job++) {
		next.tv_nsec += 40000000;
		if (next.tv_nsec >= 1000000000) {
			next.tv_nsec -= 1000000000;
			next.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
		for (volatile long work = 0; work < 300000; work++)
			;
	}
	return 0;
}
