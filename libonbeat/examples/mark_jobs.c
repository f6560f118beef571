/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A thread with a job every 10 ms says so with each, for the listener may come later, and that 96%
 * are to be in time; where a job begins and ends, and when one was late.
 *
 * cc -o mark_jobs mark_jobs.c $(pkg-config --cflags onbeat)
 */
#include <onbeat/job.h>
#include <onbeat/mdn.h>

#include <stdio.h>
#include <sys/timerfd.h>

int main(void)
{
	const struct itimerspec each = { { 0, 10000000 }, { 0, 10000000 } };
	int timer = timerfd_create(CLOCK_MONOTONIC, 0), late = 0;

	timerfd_settime(timer, 0, &each, NULL);
	for (int job = 0; job < 20; job++) {
		uint64_t periods = 0;

		onbeat_realtime_start(10000000, 960);
		onbeat_job_begin();
		for (volatile int i = 0; i < 100000; i++)
			;
		onbeat_job_end(); /* Or onbeat_realtime_finish_job(), GRACE-OS's word. */
		if (read(timer, &periods, sizeof(periods)) > 0 && periods > 1) {
			onbeat_mdn();
			late++;
		}
	}
	onbeat_realtime_exit();
	printf("20 jobs, %d late\n", late);
	return 0;
}
