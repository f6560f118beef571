/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A periodic thread that says where its jobs begin and end, and when one was late.
 *
 * cc -o mark_jobs mark_jobs.c $(pkg-config --cflags onbeat)
 */
#include <onbeat/job.h>
#include <onbeat/mdn.h>

#include <stdio.h>
#include <time.h>

#define PERIOD_NS 10000000

int main(void)
{
	struct timespec release;
	int late = 0;

	clock_gettime(CLOCK_MONOTONIC, &release);
	for (int job = 0; job < 20; job++) {
		struct timespec now;

		onbeat_job_begin();
		for (volatile int i = 0; i < 100000; i++)
			;
		onbeat_job_end();
		release.tv_nsec += PERIOD_NS;
		if (release.tv_nsec >= 1000000000) {
			release.tv_nsec -= 1000000000;
			release.tv_sec++;
		}
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec > release.tv_sec ||
		    (now.tv_sec == release.tv_sec && now.tv_nsec > release.tv_nsec)) {
			onbeat_mdn();
			late++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &release, NULL);
	}
	printf("20 jobs, %d late\n", late);
	return 0;
}
