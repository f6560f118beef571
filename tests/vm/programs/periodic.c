/* A periodic program, or a hog, for a guest with several CPUs in virtual time (clock.h).
 *
 * usage: periodic PERIOD_US ROUNDS SECONDS LOG [AFTER_US]
 *        periodic hog
 *        A line of LOG for each job: release, start, end (us since the first release), and the CPU time that it
 *        took (us). A job whose whole period is over before it could begin is left out, as a player drops a
 *        frame: its end is -1. So being late passes once there is time enough. With AFTER_US the releases are so long
 *        after the multiples of the period on the machine's clock, for several programs to have them together. The hog is nice. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"

struct job {
	long release_ns, started_ns, ended_ns, used_ns;
};

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "hog") == 0) {
		if (nice(19) == -1) {
			perror("nice");
			return 1;
		}
		for (;;) {
			one_round();
		}
	}
	if (argc != 5 && argc != 6) {
		fprintf(stderr,
			"usage: periodic PERIOD_US ROUNDS SECONDS LOG [AFTER_US] | periodic hog\n");
		return 2;
	}
	long period_ns = atol(argv[1]) * 1000, rounds = atol(argv[2]);
	long jobs = atol(argv[3]) * NS_PER_S / period_ns;
	struct job *log = calloc((size_t)jobs, sizeof(*log));
	if (!log) {
		perror("calloc");
		return 1;
	}

	long first = now_ns(CLOCK_MONOTONIC) + period_ns;
	if (argc == 6) {
		first += period_ns - first % period_ns + atol(argv[5]) * 1000;
	}
	for (long n = 0; n < jobs; n++) {
		struct job *job = &log[n];
		job->release_ns = n * period_ns;
		sleep_until(first + job->release_ns);
		job->started_ns = now_ns(CLOCK_MONOTONIC) - first;
		if (job->started_ns > job->release_ns + period_ns) {
			job->ended_ns = -1000;
			continue;
		}
		long used = now_ns(CLOCK_THREAD_CPUTIME_ID);
		for (long left = rounds; left > 0; left--) {
			one_round();
		}
		job->used_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - used;
		job->ended_ns = now_ns(CLOCK_MONOTONIC) - first;
	}

	FILE *file = fopen(argv[4], "w");
	if (!file) {
		perror(argv[4]);
		return 1;
	}
	for (long n = 0; n < jobs; n++) {
		struct job *job = &log[n];
		fprintf(file, "%ld %ld %ld %ld\n", job->release_ns / 1000, job->started_ns / 1000,
			job->ended_ns / 1000, job->used_ns / 1000);
	}
	return fclose(file) != 0;
}
