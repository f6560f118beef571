/* A process with several threads, each periodic with the same period, or each a hog: what a reservation of a whole
 * process is for.
 *
 * usage: crew THREADS PERIOD_US ROUNDS JOBS LOG
 *        crew THREADS hog SECONDS LOG
 *        crew THREADS headless
 *        A line of LOG for each job: thread, release and end (us since the first release), CPU time (us). Of hogs a
 *        line for each thread: thread, 0, SECONDS in us, CPU time. A job that is late does not move the next release. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"

#define MOST_THREADS 16
#define MOST_SECONDS 1000

struct job {
	long release_ns, ended_ns, used_ns;
};

static struct job *logs[MOST_THREADS];
static long period_ns, rounds, jobs, first;

static void *be_periodic(void *log)
{
	for (long n = 0; n < jobs; n++) {
		struct job *job = (struct job *)log + n;
		job->release_ns = n * period_ns;
		sleep_until(first + job->release_ns);
		long used = now_ns(CLOCK_THREAD_CPUTIME_ID);
		for (long left = rounds; left > 0; left--) {
			one_round();
		}
		job->used_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - used;
		job->ended_ns = now_ns(CLOCK_MONOTONIC) - first;
	}
	return NULL;
}

static void *be_a_hog(void *log)
{
	struct job *all = log;
	sleep_until(first);
	while (now_ns(CLOCK_MONOTONIC) < first + period_ns) {
		one_round();
	}
	all->used_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
	all->ended_ns = now_ns(CLOCK_MONOTONIC) - first;
	return NULL;
}

int main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 0;
	int is_headless = argc == 3 && strcmp(argv[2], "headless") == 0;
	int is_hog = is_headless || (argc == 5 && strcmp(argv[2], "hog") == 0);
	if (count < 1 || count > MOST_THREADS || (!is_hog && argc != 6)) {
		fprintf(stderr, "usage: crew THREADS PERIOD_US ROUNDS JOBS LOG | crew THREADS hog "
				"SECONDS LOG | crew THREADS headless\n");
		return 2;
	}
	period_ns = is_hog ? (is_headless ? MOST_SECONDS : atol(argv[3])) * NS_PER_S
			   : atol(argv[2]) * 1000;
	rounds = is_hog ? 0 : atol(argv[3]);
	jobs = is_hog ? 1 : atol(argv[4]);
	first = now_ns(CLOCK_MONOTONIC) + NS_PER_S / 10;

	pthread_t threads[MOST_THREADS];
	for (long n = 0; n < count; n++) {
		logs[n] = calloc((size_t)jobs, sizeof(*logs[n]));
		if (!logs[n] || pthread_create(&threads[n], NULL, is_hog ? be_a_hog : be_periodic,
					       logs[n]) != 0) {
			fprintf(stderr, "crew: no room for thread %ld\n", n);
			return 1;
		}
	}
	if (is_headless) {
		pthread_exit(NULL);
	}
	for (long n = 0; n < count; n++) {
		pthread_join(threads[n], NULL);
	}

	FILE *file = fopen(argv[argc - 1], "w");
	if (!file) {
		perror(argv[argc - 1]);
		return 1;
	}
	for (long n = 0; n < count; n++) {
		for (long job = 0; job < jobs; job++) {
			const struct job *done = &logs[n][job];
			fprintf(file, "%ld %ld %ld %ld\n", n, done->release_ns / 1000,
				done->ended_ns / 1000, done->used_ns / 1000);
		}
	}
	return fclose(file) != 0;
}
