/* What runs in the containers: `beat` computes 2 ms in each 20 ms, `hog` without an end, `pause` not at all. */
#include <string.h>
#include <time.h>
#include <unistd.h>

static void compute(long ns)
{
	struct timespec at;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
	const long long end = at.tv_sec * 1000000000LL + at.tv_nsec + ns;
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
	while (at.tv_sec * 1000000000LL + at.tv_nsec < end);
}

int main(int argc, char **argv)
{
	struct timespec next;
	if (argc < 2 || strcmp(argv[1], "pause") == 0)
		for (;;)
			pause();
	if (strcmp(argv[1], "hog") == 0)
		for (;;)
			compute(1000000000);
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (;;) {
		next.tv_nsec += 20000000;
		if (next.tv_nsec >= 1000000000) {
			next.tv_nsec -= 1000000000;
			next.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
		compute(2000000);
	}
}
