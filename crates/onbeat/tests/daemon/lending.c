/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * spin: computes for 10 s of CPU time. wait: says "here", and waits for a lock with priority
 * inheritance that the thread whose number it reads has, as it claims. What it has by then lasts
 * for microseconds, and what it takes above that it must wait for, so it hardly does anything.
 * beat: so it does, and computes for a ms each 20 ms until it is to read. chain: so it does, at
 * the end of a chain of threads that each wait for a lock of the next. late MS: says "here", and
 * once it has read a line computes for so many ms each 40 ms until there is another, and says how
 * many ms it took at most.
 */
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long passed(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000L + now.tv_nsec;
}

/* Computes until it has used so much CPU time. */
static void compute(long ns)
{
	while (passed(CLOCK_PROCESS_CPUTIME_ID) < ns)
		;
}

/* Computes for `ns` in each period until it is to read; how long it took at most. */
static long beat(long ns, long period)
{
	struct pollfd end = { .fd = 0, .events = POLLIN };
	long at = passed(CLOCK_MONOTONIC), most = 0;

	while (!poll(&end, 1, 0)) {
		long took, left;

		compute(passed(CLOCK_PROCESS_CPUTIME_ID) + ns);
		took = passed(CLOCK_MONOTONIC) - at;
		most = took > most ? took : most;
		at += (took / period + 1) * period;
		left = at - passed(CLOCK_MONOTONIC);
		if (left > 0)
			usleep(left / 1000);
	}
	return most;
}

#define LINKS 8

static volatile uint32_t threads[LINKS], words[LINKS + 1];

static long lock(volatile uint32_t *word)
{
	return syscall(SYS_futex, word, FUTEX_LOCK_PI, 0, NULL, NULL, 0);
}

static void *link_of(void *place)
{
	long link = (long)place;

	threads[link] = syscall(SYS_gettid);
	while (!words[link + 1])
		usleep(1000);
	lock(&words[link + 1]);
	pause();
	return NULL;
}

static void chain(void)
{
	pthread_t thread;

	for (long link = 0; link < LINKS; link++) {
		if (pthread_create(&thread, NULL, link_of, (void *)link))
			return;
		while (!threads[link])
			usleep(1000);
		words[link] = threads[link];
	}
}

int main(int count, char **arguments)
{
	static char line[16];
	uint32_t word = 0;

	if (count == 2 && !strcmp(arguments[1], "spin")) {
		compute(10000000000);
		return 0;
	}
	if (count == 2 && !strcmp(arguments[1], "chain"))
		chain();
	puts("here");
	fflush(stdout);
	if (count == 2 && !strcmp(arguments[1], "beat"))
		beat(1000000, 20000000);
	if (read(0, line, sizeof(line) - 1) <= 0)
		return 1;
	if (count == 3 && !strcmp(arguments[1], "late")) {
		printf("%ld\n", beat(atol(arguments[2]) * 1000000, 40000000) / 1000000);
		return 0;
	}
	for (const char *digit = line; *digit >= '0' && *digit <= '9'; digit++)
		word = word * 10 + *digit - '0';
	words[threads[0] ? LINKS : 0] = word;
	if (lock(words))
		perror("FUTEX_LOCK_PI");
	pause();
	return 0;
}
