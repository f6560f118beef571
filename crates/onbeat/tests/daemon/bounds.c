/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * spin: computes without end. execute: so do two threads, of which the second executes the program
 * anew after 60 ms.
 */
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void *execute(void *words)
{
	long began = now_ms();

	while (now_ms() < began + 60)
		;
	execv("/proc/self/exe", words);
	return NULL;
}

int main(int count, char **words)
{
	pthread_t other;

	if (count == 2 && !strcmp(words[1], "execute"))
		pthread_create(&other, NULL, execute, words);
	for (;;)
		now_ms();
}
