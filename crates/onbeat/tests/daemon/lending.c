/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * spin: computes for 10 s of CPU time. wait: says "here", and waits for a lock with priority
 * inheritance that the thread whose number it reads has, as it claims. What it has by then lasts
 * for microseconds, and what it takes above that it must wait for, so it hardly does anything.
 * beat: so it does, and computes for a ms each 20 ms until it is to read. chain: so it does, at
 * the end of a chain of threads that each wait for a lock of the next.
 */
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Computes until it has used so much CPU time. */
static void compute(long ns)
{
	struct timespec used;

	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	while (used.tv_sec * 1000000000L + used.tv_nsec < ns);
}

static void beat(void)
{
	struct pollfd number = { .fd = 0, .events = POLLIN };
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	for (long ms = 2; !poll(&number, 1, 0); ms++) {
		at.tv_nsec += 20000000;
		at.tv_sec += at.tv_nsec / 1000000000;
		at.tv_nsec %= 1000000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
		compute(ms * 1000000);
	}
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
		beat();
	if (read(0, line, sizeof(line) - 1) <= 0)
		return 1;
	for (const char *digit = line; *digit >= '0' && *digit <= '9'; digit++)
		word = word * 10 + *digit - '0';
	words[threads[0] ? LINKS : 0] = word;
	if (lock(words))
		perror("FUTEX_LOCK_PI");
	pause();
	return 0;
}
