/* Times, and work for a guest with several CPUs in virtual time.
 *
 * The emulated CPUs take turns in one stream of instructions, and a turn ends where an instruction says that
 * another CPU may go on: PAUSE, or halting. A busy loop without one keeps the stream until the next timer, and
 * the other CPUs stand still in time that passes for them too. So a round says PAUSE, and all rounds are equally
 * long: of N CPUs that are in such rounds each has 1/N of the stream. */
#include <time.h>

#define NS_PER_S 1000000000L
#define TURNS_IN_A_ROUND 500

static inline long now_ns(clockid_t clock)
{
	struct timespec time;
	clock_gettime(clock, &time);
	return time.tv_sec * NS_PER_S + time.tv_nsec;
}

static inline void sleep_until(long ns)
{
	struct timespec time = { ns / NS_PER_S, ns % NS_PER_S };
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) != 0) {
	}
}

static inline void one_round(void)
{
	__asm__ volatile("pause");
	for (int turns = TURNS_IN_A_ROUND; turns > 0; turns--) {
		__asm__ volatile("" : "+r"(turns));
	}
}
