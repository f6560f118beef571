/*
 * A periodic program that marks its jobs, from its first instruction on: marker JOBS PERIOD_US
 * WORK_US [cries] With "cries" it says after each job that it missed a deadline, which it did not.
 *
 * A job that is late puts off those after it. If jobs were made up for after a stall, there would
 * be more at once than the kernel part tells.
 */
#define _GNU_SOURCE
#include <onbeat/job.h>
#include <onbeat/mdn.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static int64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

int main(int argc, char **argv)
{
	long jobs = atol(argv[1]);
	int64_t period_ns = atol(argv[2]) * 1000, work_ns = atol(argv[3]) * 1000, release;

	onbeat_realtime_start(period_ns, 950);
	release = now_ns(CLOCK_MONOTONIC);
	for (long job = 0; job < jobs; job++) {
		int64_t until, now;
		struct timespec next;

		onbeat_job_begin();
		until = now_ns(CLOCK_THREAD_CPUTIME_ID) + work_ns;
		while (now_ns(CLOCK_THREAD_CPUTIME_ID) < until)
			;
		onbeat_job_end();
		release += period_ns;
		now = now_ns(CLOCK_MONOTONIC);
		if (release < now)
			release = now;
		next.tv_sec = release / 1000000000;
		next.tv_nsec = release % 1000000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, 0);
		if (argc > 4)
			onbeat_mdn();
	}
	onbeat_realtime_exit();
	return 0;
}
