/* What the periodic programs in C share. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline double now_ms(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static inline double ms(void)
{
	return now_ms(CLOCK_MONOTONIC);
}

/* Works for so many ms of its own CPU time. */
static inline void work(double time)
{
	double end = now_ms(CLOCK_THREAD_CPUTIME_ID) + time;
	volatile uint32_t x = 1;
	while (now_ms(CLOCK_THREAD_CPUTIME_ID) < end)
		for (int i = 0; i < 300; i++)
			x = x * 1664525 + 1013904223;
}

static inline void sleep_until(double at)
{
	struct timespec t = { (time_t)(at / 1e3), (long)((at - (time_t)(at / 1e3) * 1e3) * 1e6) };
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL))
		;
}

static inline double seconds_to_run(void)
{
	return atof(getenv("SECONDS_TO_RUN"));
}

/* Times are told at the end. */
static double told_ms[1 << 16];
static int told;

static inline void tell(double at)
{
	if (told < 1 << 16)
		told_ms[told++] = at;
}

static inline void print_told(void)
{
	for (int i = 0; i < told; i++)
		printf("%.3f\n", told_ms[i]);
	fflush(stdout);
}

static int up(const void *a, const void *b)
{
	double x = *(double *)a, y = *(double *)b;
	return (x > y) - (x < y);
}

/* What was told are not times, but durations. */
static inline void print_figures(long count)
{
	qsort(told_ms, told, sizeof *told_ms, up);
	printf("count %ld\n", count);
	if (told)
		printf("p99_ms %.1f\n", told_ms[told * 99 / 100]);
	fflush(stdout);
}
